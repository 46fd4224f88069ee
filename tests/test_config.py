"""A setting is declared once, with a sentence and a range; whatever does not fit is refused by name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdftime.config import PRESETS, BankConfig, ModelConfig, PrepareConfig, Settings, TrainConfig, preset
from pdftime.errors import ConfigError

PARTS = [PrepareConfig, ModelConfig, BankConfig, TrainConfig]
FIELDS = [(part, each.name) for part in PARTS for each in dataclasses.fields(part)]
EACH_FIELD = pytest.mark.parametrize(("part", "name"), FIELDS, ids=[name for _, name in FIELDS])


def sentences(part: type) -> dict[str, str]:
    """The text under each field, as it stands in the source."""
    body = ast.parse(inspect.getsource(part)).body[0].body  # type: ignore[attr-defined]
    found = {}
    for statement, after in itertools.pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(after, ast.Expr):
            found[statement.target.id] = after.value.value  # type: ignore[attr-defined,union-attr]
    return found


@EACH_FIELD
def test_every_setting_has_a_sentence_and_a_rule(part: type, name: str) -> None:
    text = sentences(part)[name]
    assert len(text.split()) >= 2
    assert text.endswith((".", ";"))
    assert name in part.RULES  # type: ignore[attr-defined]


def test_every_rule_belongs_to_a_setting_and_no_name_is_used_twice() -> None:
    names = [name for _, name in FIELDS]
    assert sorted(names) == sorted(name for part in PARTS for name in part.RULES)
    assert len(set(names)) == len(names)


def wrong_values(rule: Any) -> list[Any]:
    """Values of a wrong type, then values just outside the range."""
    everywhere: list[Any] = ["nonsense", object(), {}]
    if not rule.optional:
        everywhere.append(None)
    if rule.kind == "choice":
        return [*everywhere, "", 1, True, ("a",), np.zeros(3)]
    if rule.kind == "flag":
        return [*everywhere, "True", 2, -1, 0.5, np.zeros(3)]
    below = rule.low - 1 if "whole" in rule.kind else np.nextafter(rule.low, -math.inf)
    above = rule.high + 1 if "whole" in rule.kind else np.nextafter(rule.high, math.inf)
    beyond = [below, above, math.nan, math.inf, -math.inf, "1", b"1", 1j, True]
    if rule.kind in ("whole", "wholes"):
        beyond += [1.5, 2.0, np.float32(2.0)]
    if rule.kind in ("wholes", "numbers"):
        good = rule.low or 1
        return [*everywhere, *beyond, *([good, value] for value in beyond), (), [good] * 9, "11"]
    return [*everywhere, *beyond, [1], (1, 2), np.zeros(3)]


@EACH_FIELD
def test_a_wrong_value_is_refused_by_a_sentence_with_field_value_and_expectation(part: type, name: str) -> None:
    rule = part.RULES[name]  # type: ignore[attr-defined]
    for value in wrong_values(rule):
        with pytest.raises(ConfigError) as caught:
            part(**{name: value})
        assert str(caught.value) == f"{name} is {value!r}; expected {rule.expected()}."


@EACH_FIELD
def test_what_a_refusal_expects_is_said_in_words(part: type, name: str) -> None:
    rule = part.RULES[name]  # type: ignore[attr-defined]
    expected = rule.expected()
    if rule.kind == "choice":
        assert all(repr(choice) in expected for choice in rule.choices)
    elif rule.kind == "flag":
        assert expected == "True or False"
    else:
        assert f"from {rule.low:g} to {rule.high:g}" in expected
    assert expected.endswith("or None") == rule.optional


@EACH_FIELD
def test_the_ends_of_a_range_and_every_choice_are_allowed(part: type, name: str) -> None:
    rule = part.RULES[name]  # type: ignore[attr-defined]
    good: list[Any] = [rule.low, rule.high]
    if rule.kind == "choice":
        good = list(rule.choices)
    elif rule.kind == "flag":
        good = [True, False]
    elif rule.kind == "wholes":
        good = [(3,), [1, 3], range(1, 4, 2), np.array([1, 3])]
    elif rule.kind == "numbers":
        good = [0.5, (0.0, 100), [1], np.array([0.5, 1.0])]
    if rule.optional:
        good.append(None)
    for value in good:
        extra = {"n_heads": 1} if name in ("d_model", "n_heads") else {}
        extra |= {"d_model": 4096} if name == "n_heads" else {}
        extra |= {"encoder": "attention"} if name == "pooling" else {}
        kept = getattr(part(**{**extra, name: value}), name)
        if rule.kind in ("wholes", "numbers"):
            items = list(value) if hasattr(value, "__iter__") else [value]
            assert kept == tuple(items)
            assert all(type(item) is (int if rule.kind == "wholes" else float) for item in kept)
        else:
            assert kept == value
            assert (
                value is None or type(kept) is {"whole": int, "number": float, "flag": bool, "choice": str}[rule.kind]
            )


def test_numpy_numbers_become_plain_ones() -> None:
    config = TrainConfig(patience=np.int16(7), learning_rate=np.float32(0.5), level_weights=np.float32([0.25, 2]))
    assert (config.patience, config.learning_rate, config.level_weights) == (7, 0.5, (0.25, 2.0))
    assert [type(value) for value in (config.patience, config.learning_rate, *config.level_weights)] == [
        int,
        float,
        float,
        float,
    ]
    assert json.dumps(config.to_json())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kernel_sizes": (3, 4, 6)}, r"kernel_sizes holds \[4, 6\]; expected odd sizes"),
        ({"n_prototypes": (1, 2, 3, 4, 5)}, r"n_prototypes has 5 levels; expected 1 to 4"),
        ({"d_model": 10, "n_heads": 4}, r"d_model is 10 and n_heads 4; the heads must divide it"),
        ({"encoder": "none", "pooling": "token"}, r"pooling is 'token' and encoder 'none'; expected encoder='att"),
        (
            {"encoder": "window", "pooling": "token"},
            r"pooling is 'token' and encoder 'window'; expected encoder='att",
        ),
        ({"views": "both", "head": "linear"}, r"views is 'both' and head 'linear'; expected head='prototypes'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ModelConfig(**changes)


def test_heads_need_not_divide_where_there_is_no_attention() -> None:
    assert ModelConfig(encoder="none", d_model=10, n_heads=4).d_model == 10


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        preset("network").model.d_model = 3  # type: ignore[misc]


# Changing and storing


def test_but_changes_only_what_it_names_wherever_it_belongs() -> None:
    before = preset("network")
    after = before.but(scaling="series", d_model=12, n_prototypes=2, patience=5)
    assert (after.prepare.scaling, after.model.d_model, after.model.n_prototypes) == ("series", 12, (2,))
    assert after.training.patience == 5
    back = after.but(
        scaling=before.prepare.scaling,
        d_model=before.model.d_model,
        n_prototypes=before.model.n_prototypes,
        patience=before.training.patience,
    )
    assert back == before
    assert before == preset("network")


def test_but_refuses_an_unknown_setting_and_lists_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("Unknown settings ['dmodel', 'lr']; expected any of [")
    ) as caught:
        Settings().but(lr=0.1, dmodel=8, patience=3)
    assert all(repr(name) in str(caught.value) for _, name in FIELDS)


def test_but_checks_what_it_changes() -> None:
    with pytest.raises(ConfigError, match="patience is 0; expected a whole number from 1"):
        Settings().but(patience=0)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("Unknown preset 'papre'; expected one of ['default', 'fast', 'network', 'paper'")
    ):
        preset("papre")


@settings(max_examples=25, deadline=None)
@given(
    base=st.sampled_from(sorted(PRESETS)),
    scaling=st.sampled_from(["train", "series", "none"]),
    n_prototypes=st.lists(st.integers(1, 64), min_size=1, max_size=4),
    max_tokens=st.none() | st.integers(1, 1000),
    learning_rate=st.floats(1e-8, 10.0),
    momentum=st.none() | st.floats(0.0, 1.0),
    level_weights=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=8),
)
def test_settings_come_back_from_json_as_they_were(base: str, **changes: Any) -> None:
    before = preset(base).but(**changes)
    after = Settings.from_json(json.loads(json.dumps(before.to_json())))
    assert after == before
    assert hash(after) == hash(before)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state.pop("model"),
        lambda state: state.update(extra={}),
        lambda state: state["model"].pop("d_model"),
        lambda state: state["training"].update(learning_rat=0.1),
        lambda state: state["training"].update(patience=0),
        lambda state: state["model"].update(kernel_sizes=[2]),
        lambda state: state.update(prepare=[]),
    ],
)
def test_stored_settings_that_do_not_fit_are_refused(spoil: Any) -> None:
    state = Settings().to_json()
    spoil(state)
    with pytest.raises(ConfigError, match="expected"):
        Settings.from_json(state)
    with pytest.raises(ConfigError, match="expected"):
        Settings.from_json([])  # type: ignore[arg-type]


@pytest.mark.parametrize("views", ["network", "bank", "both"])
def test_settings_in_use_are_those_of_the_views_that_look(views: str) -> None:
    before = Settings().but(views=views)
    used = before.in_use()
    for part, name in FIELDS:
        home = {PrepareConfig: "prepare", ModelConfig: "model", BankConfig: "bank", TrainConfig: "training"}[part]
        looks = home == "prepare" or name == "views" or views == "both" or (home == "bank") == (views == "bank")
        assert (name in used.get(home, {})) == looks, name
        if looks:
            assert used[home][name] == before.to_json()[home][name]
    other = before.but(n_groups=7, d_model=12, patience=5, scaling="series")
    assert other.in_use()["prepare"]["scaling"] == "series"
    only = {"network": {"n_groups": 7}, "bank": {"d_model": 12, "patience": 5}, "both": {}}[views]
    assert before.but(**only).in_use() == used


# Presets


def test_the_network_is_the_settings_as_they_are_declared_and_the_default_the_bank() -> None:
    assert preset("network") == Settings()
    assert preset("default") == preset("fast")


@pytest.mark.parametrize(("name", "views"), [("fast", "bank"), ("strong", "both"), ("paper", "network")])
def test_presets_differ_from_the_default_in_what_looks_at_a_series(name: str, views: str) -> None:
    assert preset(name).model.views == views
    if name != "paper":
        own = {"least_timepoints": 64, "n_steps": 1000, "n_folds": 4} if name == "strong" else {}
        assert preset(name) == Settings().but(views=views, **own)


@pytest.mark.parametrize(
    ("name", "value"),
    {
        # Appendix B, table of hyper-parameters
        "n_layers": 2,
        "batch_size": 16,
        "dropout": 0.2,
        "d_model": 128,
        "learning_rate": 0.001,
        "max_epochs": 150,
        "patience": 20,
        # Section 4.4
        "warm_epochs": 3,
        "active_epochs": 10,
        "gamma_a": 0.99,
        "gamma_b": 0.999,
        "momentum_tau": 30.0,
        "momentum": None,
        "diversity_weight": 0.01,
        "diversity_step": 0.0,
        "assignment_temperature": 1.0,
        "prototype_update": "ema",
        "head": "prototypes",
        # Appendix C
        "n_prototypes": (2, 3),
        # Sections 3.1, 4.2 and 4.3
        "lengths": "resample",
        "frequency_mask": True,
        "embedding": "inception",
        "encoder": "attention",
        "max_tokens": None,
    }.items(),
)
def test_the_paper_preset_is_the_paper_to_the_letter(name: str, value: Any) -> None:
    found = {name: each for part in preset("paper").to_json().values() for name, each in part.items()}
    assert found[name] == value
