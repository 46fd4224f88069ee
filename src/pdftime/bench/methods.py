"""Methods: what is compared. Ours by preset, settings and ablation; peers by name; any class by import path.

default    paper    network:dropout=0.1,n_members=3    paper+linear-head    no-frequency-mask
rocket     rocket{"n_kernels": 2000}
sklearn.dummy:DummyClassifier{"strategy": "prior"}
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdftime.bench.peers import PEERS
from pdftime.config import PRESETS, chosen, preset, value_of
from pdftime.errors import ConfigError

OURS = "pdftime.estimator:PDFTimeClassifier"
KEYWORDS = ("n_members", "class_weight")
"""What may be changed of ours beside the settings."""
OVERRIDE = re.compile(r"[,;](?=\s*[A-Za-z_][\w-]*=)")


@dataclass(frozen=True)
class Method:
    """A classifier to build: a class with arguments, all plain data, so that it can go to another process."""

    name: str
    class_path: str
    """module:Class"""
    arguments: dict[str, Any] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)
    """Everything that changes the result, except the seed and a time limit."""
    summary: dict[str, Any] = field(default_factory=dict)
    """The same for people: what differs from the preset or the class's defaults."""
    time_keyword: str | None = None
    """The argument that takes a time limit; None where the class knows none."""
    warm_up: bool = False
    """Whether to learn a tiny problem before the clock starts."""

    @property
    def is_ours(self) -> bool:
        return self.class_path == OURS

    def configuration(self, max_time: float | None) -> str:
        """Twelve hexadecimal digits that stand for everything that changes the result."""
        return hashlib.sha256(_canonical(self._limited(self.identity, max_time)).encode()).hexdigest()[:12]

    def settings(self, max_time: float | None) -> str:
        """The method in short, as JSON."""
        return json.dumps(self._limited(self.summary, max_time), ensure_ascii=False)

    def build(self, seed: int, n_threads: int, max_time: float | None) -> Any:
        """A fresh classifier; seed and threads are passed where its class takes them and nothing else is said."""
        kind = load_class(self.class_path)
        known = inspect.signature(kind).parameters
        free = {"random_state": seed, "n_jobs": n_threads, "n_threads": n_threads}
        arguments = {name: value for name, value in free.items() if name in known} | self.arguments
        if self.time_keyword is not None and max_time is not None:
            arguments[self.time_keyword] = max_time / 60 if "minutes" in self.time_keyword else max_time
        return kind(**arguments)

    def _limited(self, facts: dict[str, Any], max_time: float | None) -> dict[str, Any]:
        """A class that knows no time limit gives the same result within any."""
        return facts if self.time_keyword is None or max_time is None else {**facts, "max_time": max_time}


def method_of(text: str) -> Method:
    """The method that a text names.

    >>> method_of("network:dropout=0.1,n_members=3").settings(None)
    '{"preset": "network", "dropout": 0.1, "n_members": 3}'
    """
    text = text.strip()
    head, brace, rest = text.partition("{")
    arguments = _json(text, brace + rest)
    if head in PEERS:
        return _peer(text, head, arguments)
    if not brace:
        own = _ours(text)
        if own is not None:
            return own
    if ":" in head:
        return _class(text, head, arguments)
    raise ConfigError(
        f"There is no method {text!r}. Expected a preset ({', '.join(PRESETS)}), one with settings "
        f"(network:dropout=0.1) or an ablation (paper+linear-head), a peer ({', '.join(PEERS)}), "
        'or a class (package.module:Class{"argument": 1}).'
    )


def load_class(path: str) -> Any:
    """The class that `module:Class` names; modules in the working directory are found as well."""
    module, _, name = path.partition(":")
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{path} cannot be imported: {error}.") from error
    finally:
        sys.path.remove(here)


def missing_extra(method: Method) -> str | None:
    """The extra to install where a peer's package is not there."""
    peer = next((peer for peer in PEERS.values() if peer.class_path == method.class_path), None)
    if peer is None:
        return None
    package = "pypots" if peer.extra == "pypots" else peer.class_path.partition(".")[0]
    return None if importlib.util.find_spec(package) is not None else peer.extra


def _ours(text: str) -> Method | None:
    """Ours, if the text begins with a preset or an ablation."""
    from pdftime.bench.ablations import ABLATIONS

    base, _, overrides = text.partition(":")
    name, *ablations = base.split("+")
    if name in ABLATIONS:
        name, ablations = "network", [name, *ablations]
    if name not in PRESETS:
        return None
    changes: dict[str, Any] = {}
    for ablation in ablations:
        if ablation not in ABLATIONS:
            raise ConfigError(f"There is no ablation {ablation!r}; expected one of {', '.join(ABLATIONS)}.")
        changes |= ABLATIONS[ablation]
    for pair in OVERRIDE.split(overrides) if overrides else []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{pair!r} in {text!r} is no setting; write name=value, as in network:dropout=0.1.")
        changes[key.strip().replace("-", "_")] = value_of(value.strip())
    keywords = {key: value for key, value in changes.items() if key in KEYWORDS}
    settings = {key: value for key, value in changes.items() if key not in KEYWORDS}
    wanted = chosen(name, settings)
    resolved = _plain(wanted.to_json())
    count = keywords.get("n_members", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ConfigError(f"n_members is {count!r}; expected a whole number from 1.")
    original = _plain(preset(name).to_json())
    differing = {
        key: value for part in resolved for key, value in resolved[part].items() if value != original[part][key]
    }
    return Method(
        name=text,
        class_path=OURS,
        arguments={"preset": name, "settings": _plain(settings), **keywords},
        identity={"class": OURS, "settings": _plain(wanted.in_use()), "n_members": count, **keywords},
        summary={"preset": name, **differing, **keywords},
        time_keyword="max_time_s",
    )


def _peer(text: str, name: str, arguments: dict[str, Any]) -> Method:
    peer = PEERS[name]
    changed = peer.arguments | arguments
    return Method(
        name=text,
        class_path=peer.class_path,
        arguments=changed,
        identity={"class": peer.class_path, "arguments": changed},
        summary={"class": peer.class_path, **changed},
        time_keyword=peer.time_keyword,
        warm_up=peer.warm_up,
    )


def _class(text: str, path: str, arguments: dict[str, Any]) -> Method:
    try:
        load_class(path)(**arguments)
    except TypeError as error:
        raise ConfigError(f"{path} cannot be made with {json.dumps(arguments)}: {error}.") from error
    return Method(
        name=text,
        class_path=path,
        arguments=arguments,
        identity={"class": path, "arguments": arguments},
        summary={"class": path, **arguments},
        warm_up=path.startswith("aeon."),
    )


def _json(text: str, braces: str) -> dict[str, Any]:
    if not braces:
        return {}
    try:
        arguments = json.loads(braces)
    except ValueError as error:
        raise ConfigError(f"The arguments of {text!r} are not JSON: {error}.") from error
    if not isinstance(arguments, dict):
        raise ConfigError(f"The arguments of {text!r} are no JSON object.")
    return arguments


def _plain(state: Any) -> Any:
    """Plain data as it comes back from JSON, where tuples are lists."""
    return json.loads(json.dumps(state))


def _canonical(state: Any) -> str:
    return json.dumps(state, sort_keys=True, separators=(",", ":"))
