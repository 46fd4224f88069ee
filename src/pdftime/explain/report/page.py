"""One HTML file from page data: nothing in it is fetched, and nothing that comes from data is ever markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "kit",
    "charts",
    "state",
    "cases",
    "time",
    "decision",
    "likeness",
    "where",
    "trust",
    "model",
    "start",
)


def html_page(content: dict[str, Any]) -> str:
    """The page: its frame, style and script, and the content as JSON that only the script reads.

    The script writes content as text nodes, never as HTML; the policy allows this very style and script, and no
    request at all.
    """
    style = "\n" + _part("style.css")
    script = '\n"use strict";\n' + "".join(_part(f"script/{name}.js") for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "script": script, "content": json_text(content)}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _part("page.html"))


def json_text(content: Any) -> str:
    """JSON that cannot end the element it stands in: no '<', '>' or '&' is left in it.

    >>> json_text({"label": "</script>"})
    '{"label":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """The name that a content security policy has for exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
