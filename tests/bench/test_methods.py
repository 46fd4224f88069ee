"""Methods: what a text names, and when two of them are the same configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pdftime.bench.ablations import ABLATIONS
from pdftime.bench.methods import OURS, Method, load_class, method_of, missing_extra
from pdftime.bench.peers import PEERS
from pdftime.config import PRESETS, preset
from pdftime.errors import ConfigError


@pytest.mark.parametrize("name", [*PRESETS, *ABLATIONS])
def test_presets_and_ablations_are_methods_by_name(name: str) -> None:
    method = method_of(name)
    model = method.build(seed=3, n_threads=1, max_time=None)
    assert method.name == name
    assert method.is_ours
    assert (model.random_state, model.n_threads) == (3, 1)
    settings = preset(name) if name in PRESETS else preset("network").but(**ABLATIONS[name])
    assert model._resolve_settings() == settings


def test_overrides_reach_the_classifier() -> None:
    method = method_of(
        "paper+linear-head+no-frequency-mask:kernel_sizes=5,11,dropout=0.1;n_members=3,max-tokens=null"
    )
    model = method.build(seed=0, n_threads=1, max_time=30.0)
    settings = model._resolve_settings()
    assert (settings.model.kernel_sizes, settings.model.dropout, settings.model.max_tokens) == ((5, 11), 0.1, None)
    assert (settings.model.head, settings.model.frequency_mask) == ("linear", False)
    assert (model.n_members, model.max_time_s, model.preset) == (3, 30.0, "paper")
    assert json.loads(method.settings(30.0)) == {
        "preset": "paper",
        "frequency_mask": False,
        "kernel_sizes": [5, 11],
        "dropout": 0.1,
        "head": "linear",
        "n_members": 3,
        "max_time": 30.0,
    }


def test_the_configuration_is_what_changes_the_result() -> None:
    default = method_of("network").configuration(None)
    assert len(default) == 12
    dropout = PRESETS["network"].model.dropout
    assert method_of(f"network:dropout={dropout}").configuration(None) == default
    assert method_of("network:n_members=1").configuration(None) == default
    others = ["network:dropout=0.77", "network:n_members=2", "paper", "rocket", 'rocket{"n_kernels": 500}', "hydra"]
    assert len({default, *(method_of(text).configuration(None) for text in others)}) == 7
    assert method_of("network").configuration(60.0) != default
    assert method_of("network").configuration(60.0) != method_of("network").configuration(61.0)
    assert method_of("rocket").configuration(60.0) == method_of("rocket").configuration(None)
    assert method_of("hivecote2").configuration(60.0) != method_of("hivecote2").configuration(None)


def test_the_configuration_is_the_same_in_every_process() -> None:
    method = Method("m", "a:B", identity={"class": "a:B", "arguments": {"y": 1, "x": [2.5, None]}})
    assert method.configuration(None) == "319fe9873fe8"


def test_a_class_by_import_path_gets_its_arguments(contestants: Path) -> None:
    prior = method_of('sklearn.dummy:DummyClassifier{"strategy": "prior"}').build(5, 1, None)
    assert (prior.strategy, prior.random_state) == ("prior", 5)
    given = method_of('contestants:Honest{"random_state": 9, "seconds": 0.0}').build(5, 1, None)
    assert given.random_state == 9
    assert load_class(OURS).__name__ == "PDFTimeClassifier"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", "no method 'nothing'"),
        ("network:dropot=0.1", "Unknown settings"),
        ("network:dropout", "no setting"),
        ("network:n_members=0", "n_members is 0"),
        ("network+nothing", "no ablation 'nothing'"),
        ("absent.module:Class", "cannot be imported"),
        ("sklearn.dummy:Absent", "cannot be imported"),
        ('sklearn.dummy:DummyClassifier{"what": 1}', "cannot be made with"),
        ("rocket{n_kernels: 1}", "not JSON"),
        ("sklearn.dummy:DummyClassifier{1}", "not JSON"),
    ],
)
def test_what_names_no_method_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        method_of(text)


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_that_is_installed_can_be_built(name: str) -> None:
    method = method_of(name)
    if missing_extra(method) is not None:
        pytest.skip(f"install pdftime[{missing_extra(method)}]")
    model = method.build(seed=1, n_threads=1, max_time=120.0)
    for keyword, value in PEERS[name].arguments.items():
        assert getattr(model, keyword) == value
    if name == "hivecote2":
        assert model.time_limit_in_minutes == 2.0


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert missing_extra(method_of("rocket")) == "bench"
    assert missing_extra(method_of("resnet")) == "bench"
    assert missing_extra(method_of("timesnet")) == "pypots"
    assert missing_extra(method_of("default")) is None
