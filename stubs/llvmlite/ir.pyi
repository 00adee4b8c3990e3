# Only what this project uses.
from typing import Any

VectorType: Any
DoubleType: Any
IntType: Any
VoidType: Any
FunctionType: Any
Constant: Any
Undefined: Any
