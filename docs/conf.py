"""The documentation site: Sphinx with the PyData theme. `make docs` builds it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx

from steadytd import __version__
from steadytd.lab.page import lab_page
from steadytd.report.pages import figure_files

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from living import described_in, notebooks, pictures, with_figures  # noqa: E402 (stands beside this file)

CONTENTS = tomllib.loads((HERE / "contents.toml").read_text(encoding="utf-8"))
LONG = 60  # characters of LaTeX
EXAMPLES = sorted((HERE.parent / "examples").glob("*.py"))

project = "steadytd"
version = release = __version__
author = "the steadytd authors"
project_copyright = "the steadytd authors. MIT licence"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "*.py"]
default_role = "code"  # docstrings quote with single backquotes
nitpicky = False

myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
highlight_language = "text"

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_type_aliases = {name: name for name in (
    "ArrayLike", "Floats", "Ints", "Longs", "Bools", "Finite", "Seeds", "Targets",
)}  # fmt: skip
add_module_names = False
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 78

html_theme = "pydata_sphinx_theme"
html_title = "steadytd"
html_static_path = ["_static"]
html_favicon = "_static/logo.svg"
html_css_files = ["figure.css", "site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it would be fetched, which a page opened as a file cannot do
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "gallery": []}
html_theme_options = {
    "logo": {
        "text": "steadytd",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "back_to_top_button": False,
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def with_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add what stands below a page, so that pages themselves stay plain Markdown."""
    below = CONTENTS.get(page)
    for path in described_in(source[0], page):
        app.env.note_dependency(str(path))
    source[0] = with_links(with_figures(source[0], page))
    if page == "examples":
        source[0] += "".join(map(example, EXAMPLES))
        for path in EXAMPLES:
            app.env.note_dependency(str(path))
    if below and not page.startswith("api/"):
        listed = "\n".join(
            re.sub(r"(\S+?)(>?)$", r"/\1\2", name).replace("/<", "</") for name in below
        )
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n{listed}\n```\n"


def with_links(text: str) -> str:
    """Links to files of the repository, as links to where the site shows them."""
    text = text.replace("```python\n# runs\n", "```python\n")  # a mark for the tests
    text = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", r"](/examples.md#\1)", text)
    return re.sub(r"\]\((?:\.\./)+CONTRIBUTING\.md\)", "](/contributing.md)", text)


def example(path: Path) -> str:
    """A section with a file of `examples/`."""
    code = path.read_text(encoding="utf-8")
    return f"\n\n## {path.stem}\n\n`python examples/{path.name}`\n\n```python\n{code}```\n"


def inline_math(self: Any, node: Any) -> None:
    """A formula in a line. A long one may be broken before a relation: browsers do not do it."""
    long = len(node.astext()) > LONG
    parts = re.split(r" (?=(?:=|<|>|\\leftarrow|\\le|\\ge) )", node.astext())
    whole = all(part.count(a) == part.count(b) for part in parts for a, b in ("{}", "()", "[]"))
    shown = parts if long and whole else [node.astext()]
    self.body.append("<wbr>".join(map(mathml, shown)))
    raise SkipNode


def block_math(self: Any, node: Any) -> None:
    """A formula of its own."""
    formula = mathml(node.astext().replace("{aligned}", "{align*}"), "block")
    self.body.append(f'<div class="formula" tabindex="0">{formula}</div>\n')
    raise SkipNode


def mathml(latex: str, display: str = "inline") -> str:
    """MathML, which browsers draw by themselves; a prime is a sign of full size."""
    prime = r"<msup>(<mi>[^<]*</mi>|<mover>.*?</mover>)<mi>&#x02032;</mi></msup>"
    shown = convert(latex, display=display)
    return re.sub(prime, r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', shown)


def escape_bars(*given: Any) -> None:
    """In a docstring `pi(a|s)` is a probability, and not a substitution of reStructuredText."""
    lines = given[-1]
    lines[:] = [re.sub(r"(?<=[\w')])\|(?=\w)", r"\|", line) for line in lines]


def plain_types(*given: Any) -> tuple[str | None, str | None]:
    """Names of array types as they stand in the code."""
    arguments, result = given[-2:]
    forward = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    return arguments and forward.sub(r"\1", arguments), result and forward.sub(r"\1", result)


def with_scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """What draws figures, on pages that have some."""
    if 'class="live"' in context.get("body", ""):
        app.add_js_file("live.js", loading_method="defer")


def write_files(app: Sphinx, error: Exception | None) -> None:
    """The lab as a static page, the tutorials as notebooks, and what draws the figures."""
    if error is not None:
        return
    files = {f"notebooks/{name}": text for name, text in notebooks()}
    files |= {f"_static/{name}": text for name, text in (figure_files() | pictures()).items()}
    for name, text in {**files, "lab/live.html": lab_page()}.items():
        path = Path(app.outdir) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the parts."""
    app.add_config_value("contents", CONTENTS, "env")  # all pages are read again when it changes
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("source-read", with_contents)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-signature", plain_types)
    app.connect("html-page-context", with_scripts)
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
