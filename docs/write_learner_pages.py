"""Write docs/learners/ from the learners' own files. `make docs` runs it; a test compares."""

from pathlib import Path

from steadytd.report.learner_pages import learner_pages

directory = Path(__file__).parent / "learners"
directory.mkdir(exist_ok=True)
pages = learner_pages()
for stale in {p.name for p in directory.glob("*.md")} - set(pages):
    (directory / stale).unlink()
for name, text in pages.items():
    (directory / name).write_text(text, encoding="utf-8")
print(f"{len(pages)} pages in docs/learners")
