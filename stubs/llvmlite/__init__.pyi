from llvmlite import ir as ir

__version__: str
