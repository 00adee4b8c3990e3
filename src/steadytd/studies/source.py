"""Where a study comes from: a file, or one of those that come with the package."""

from __future__ import annotations

import tomllib
from pathlib import Path

from steadytd.base.errors import InputError, unknown
from steadytd.studies.spec import Spec, parse_spec


def load_spec(path: str | Path) -> Spec:
    """Read and check a study file; a bare name means one that comes with the package."""
    source = Path(path)
    if not source.is_file() and str(path) in _files():
        source = _files()[str(path)]
    try:
        text = source.read_text(encoding="utf-8")
    except FileNotFoundError:
        if source.suffix:
            raise InputError(f"there is no study file '{source}'.") from None
        raise unknown("study", source, _files()) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the study file '{source}': {error}.") from None
    return parse_spec(text, source.stem, str(source))


def _files() -> dict[str, Path]:
    """The studies that come with the package, by name; in a clone they stand beside the sources."""
    here = Path(__file__).resolve().parent
    places = (here / "files", here.parents[2] / "studies")
    found = next((place for place in places if place.is_dir()), here)
    return {path.stem: path for path in sorted(found.glob("*.toml"))}


def studies() -> dict[str, str]:
    """Every study that comes with the package, with its title."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in _files().items()}
    return {name: str(tomllib.loads(text).get("title", "")) for name, text in texts.items()}
