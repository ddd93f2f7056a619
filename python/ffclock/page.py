"""HTML pages that hold everything inside themselves: no script, nothing to be loaded, so that they can be mailed or kept as they are."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

_STYLE: Final = """body { font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #1a1a1a; background: #fff; }
body { margin: 2rem auto; max-width: 88rem; padding: 0 1.5rem; }
h1 { margin: 0 0 .3rem; font-size: 1.7rem; }
h2 { margin: 2rem 0 .6rem; font-size: 1.15rem; }
p.conditions { margin: 0 0 1rem; color: #444; }
p.verdict { margin: 1rem 0; padding: .6rem .9rem; border-left: .4rem solid; background: #f6f6f6; }
.kept { border-color: #009e73; } .broken { border-color: #d55e00; } .unknown { border-color: #8a8a8a; }
img { width: 100%; height: auto; }
.tables { display: flex; flex-wrap: wrap; gap: 0 3.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .9rem .28rem 0; border-bottom: 1px solid #e3e3e3; text-align: left; vertical-align: top; }
th { color: #444; font-weight: 600; }
td.number { text-align: right; white-space: nowrap; }
td.missed { color: #a84300; font-weight: 600; } td.met { color: #00704f; } td.met, td.missed { white-space: nowrap; }
footer { margin: 2.5rem 0 1rem; color: #666; font-size: .85rem; }
@media print { body { margin: 0; max-width: none; } table, img { break-inside: avoid; } }
figure { margin: 1.2rem 0 2.4rem; } figcaption { max-width: 76rem; color: #333; }
figcaption code { background: #f3f3f3; padding: .1rem .3rem; overflow-wrap: anywhere; }
td.best { font-weight: 700; } .wide { overflow-x: auto; }
"""


# A value with a unit at most: what reads as a sentence stands at the left.
_NUMBER: Final = re.compile(r"[-+]?[\d.,e\u202f]+( \S{1,6})?|-")


def document(title: str, body: Sequence[str], footer: str) -> str:
    """A whole page; ``body`` and ``footer`` are HTML, ``title`` is text."""
    parts = "\n".join(part for part in body if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"{parts}\n<footer>{footer}</footer>\n</body>\n</html>\n"
    )


def picture(png: bytes, alternative: str) -> str:
    """A PNG inside the page; ``alternative`` says in words what it shows."""
    return f'<img alt="{escape(alternative)}" src="data:image/png;base64,{base64.b64encode(png).decode("ascii")}">'


def write(text: str, images: Mapping[str, bytes], output: Path, name: str) -> list[Path]:
    """Writes a page to the file ``output``, which ends in .html; or into a directory, as ``name`` with the PNG ``images`` beside it.

    Returns what was written. OSError if that fails, or if ``output`` is a file of another kind.
    """
    if output.exists() and not output.is_dir() and output.suffix != ".html":
        raise FileExistsError(f"{output} is a file, and the name of a page ends in .html: name a page, or a directory")
    if output.suffix == ".html" and not output.is_dir():
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
        return [output]
    output.mkdir(parents=True, exist_ok=True)
    for image, png in images.items():
        (output / image).write_bytes(png)
    (output / name).write_text(text, encoding="utf-8")
    return [*(output / image for image in images), output / name]


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table below its title; nothing if it has no rows. Cells are text."""
    body = "\n".join("<tr>" + "".join(_cell(text, place) for place, text in enumerate(row)) + "</tr>" for row in rows)
    if not body:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    heading = f"<h2>{escape(title)}</h2>\n" if title else ""
    return f'<section class="wide">{heading}<table>\n<tr>{head}</tr>\n{body}\n</table></section>'


def _cell(text: str, place: int) -> str:
    if text.startswith("**"):
        return f'<td class="number best">{escape(text[2:])}</td>'
    is_number = place > 0 and bool(_NUMBER.fullmatch(text))
    kind = "missed" if text.startswith("✗") else "met" if text.startswith("✓") else "number" if is_number else ""
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"
