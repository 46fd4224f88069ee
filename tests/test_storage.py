"""A model file gives back the model bit for bit, or is refused with a sentence."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pdftime import PDFTimeClassifier, check_series, load
from pdftime.container import FORMAT_VERSION, read_container, write_container
from pdftime.errors import ModelFileError
from pdftime.explain.report.model_content import facts_of

KEPT = Path(__file__).parent / "data_files"
NETWORK = {
    "branch_width": 2,
    "n_inception_layers": 1,
    "kernel_sizes": (3,),
    "n_heads": 2,
    "d_model": 4,
    "max_epochs": 2,
}
BANK = {"n_groups": 2, "n_biases": 1}
SMALL = {"network": NETWORK, "paper": NETWORK, "fast": BANK, "strong": {**NETWORK, **BANK}}
"""By preset, the settings that it has a use for."""

RNG = np.random.default_rng(0)
X = RNG.standard_normal((15, 2, 9)) + np.tile([[0.0], [1.0], [2.0]], (5, 1))[:, :, None]
Y = np.array(["a", "b", "c"] * 5)
FRESH = RNG.standard_normal((7, 2, 9))


def fit(series: Any = X, y: Any = Y, **keywords: Any) -> PDFTimeClassifier:
    preset = keywords.pop("preset", "network")
    settings = {**SMALL[preset], **keywords.pop("settings", {})}
    return PDFTimeClassifier(preset=preset, settings=settings, **keywords).fit(series, y)


def assert_same(one: PDFTimeClassifier, two: PDFTimeClassifier, fresh: Any = FRESH) -> None:
    """Everything that a user can see is equal, to the last bit."""
    assert one.predict_proba(fresh).tobytes() == two.predict_proba(fresh).tobytes()
    assert one.transform(fresh).tobytes() == two.transform(fresh).tobytes()
    assert one.predict(fresh).tolist() == two.predict(fresh).tolist()
    assert (one.classes_.dtype, one.classes_.tolist()) == (two.classes_.dtype, two.classes_.tolist())
    assert [type(each) for each in one.classes_.tolist()] == [type(each) for each in two.classes_.tolist()]
    assert one.history_ == two.history_
    assert one.metrics_ == two.metrics_
    assert [each.tobytes() for each in one.prototypes_] == [each.tobytes() for each in two.prototypes_]
    assert one.n_features_in_ == two.n_features_in_


def explanations(model: PDFTimeClassifier, fresh: Any) -> str:
    return json.dumps([each.to_dict() for each in model.explain(fresh)])


@pytest.fixture(scope="module")
def saved_network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "small.pdftime"
    fit(validation_fraction=0.3, keep_prototypes=1).save(path)
    return path


@pytest.fixture(scope="module")
def saved_both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank is the first member, a network the second."""
    path = tmp_path_factory.mktemp("saved") / "both.pdftime"
    fit(preset="strong", validation_fraction=0.3, keep_prototypes=1).save(path)
    return path


@pytest.fixture(scope="module", params=["network", "both"])
def saved(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(f"saved_{request.param}")
    return path


@pytest.fixture
def rewritten(saved: Path, tmp_path: Path) -> Callable[..., Path]:
    """The saved model with changed arrays or header, sealed with a right digest, as a forger would."""

    def write(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Path:
        arrays, header = read_container(saved, kind="model")
        change(arrays, header)
        path = tmp_path / "changed.pdftime"
        write_container(path, arrays, header, kind="model")
        return path

    return write


def refusal(path: Path, **options: Any) -> str:
    """The sentence with which a file is refused; it names the file."""
    with pytest.raises(ModelFileError) as caught:
        load(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert message.endswith(".")
    return message


# What is saved is what is loaded.


CHOICES: dict[str, dict[str, Any]] = {
    "network": {},
    "calibrated": {"validation_fraction": 0.3},
    "an ensemble": {"n_members": 3, "validation_fraction": 0.3},
    "one level": {"n_prototypes": 3},
    "three levels": {"n_prototypes": (1, 2, 3)},
    "window": {"encoder": "window"},
    "no encoder": {"encoder": "none"},
    "two layers": {"n_layers": 2},
    "each series scaled": {"scaling": "series"},
    "no scaling": {"scaling": "none"},
    "no frequency mask": {"settings": {"frequency_mask": False}},
    "linear embedding": {"settings": {"embedding": "linear"}},
    "class token": {"settings": {"pooling": "token"}},
    "linear head": {"settings": {"head": "linear"}},
    "prototypes by gradient": {"settings": {"prototype_update": "gradient"}},
    "few tokens": {"settings": {"max_tokens": 3}},
    "every time point": {"settings": {"max_tokens": None}},
    "many kernels": {"settings": {"kernel_sizes": (3, 5, 9), "n_inception_layers": 2}},
    "the paper's": {"preset": "paper"},
    "prototypes kept": {"keep_prototypes": 1, "n_members": 2},
    "a bank": {"preset": "fast"},
    "three banks": {"preset": "fast", "n_members": 3},
    "both views": {"preset": "strong"},
    "both views, weighed": {"preset": "strong", "n_members": 2, "validation_fraction": 0.3, "keep_prototypes": 1},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_loaded_model_is_the_saved_one(choice: str, tmp_path: Path) -> None:
    model = fit(**CHOICES[choice])
    model.save(tmp_path / "model.pdftime")
    loaded = load(tmp_path / "model.pdftime")
    assert_same(model, loaded)
    assert explanations(model, FRESH) == explanations(loaded, FRESH)
    assert model.explain_model().to_json() == loaded.explain_model().to_json()


def fixed_times(n: int, seed: int) -> tuple[Any, Any]:
    """Slow waves of any height at any time, and by class high or low ones at fixed times: what places are for."""
    rng = np.random.default_rng(seed)
    y, time = np.arange(n) % 3, np.arange(60) / 60

    def waves(height: Any, centre: Any) -> Any:
        return (height * np.exp(-(((time - centre) / 0.06) ** 2))).sum(axis=1)

    height = np.array([[1, -1, 1, -1], [-1, 1, -1, 1], [1, 1, -1, -1]])[y]
    fixed = waves(0.8 * height[..., None], np.array([0.2, 0.4, 0.6, 0.8])[:, None])
    return fixed + waves(rng.standard_normal((n, 6, 1)), rng.random((n, 6, 1))), y


@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_a_bank_with_values_at_their_places_is_kept_and_no_part_of_them(lengths: str, tmp_path: Path) -> None:
    series, y = fixed_times(90, seed=0)
    fresh, fresh_y = fixed_times(30, seed=1)
    shorter = [*series[:-1], series[-1][:59]]
    model = fit(shorter, y, preset="fast", lengths=lengths)
    assert model.metrics_["members"][0]["places"]
    assert model.score(fresh, fresh_y) > 0.8
    path = tmp_path / "model.pdftime"
    model.save(path)
    loaded = load(path)
    assert dict(facts_of(loaded.model_))["Features of the bank"].endswith(", with values at their places")
    assert_same(model, loaded, fresh)
    assert explanations(model, fresh[:1]) == explanations(loaded, fresh[:1])
    for explanation in loaded.explain(fresh[:1]):
        assert explanation.check()["additivity error"].passed
        assert explanation.check()["completeness gap"].passed

    def fewer(arrays: dict[str, Any], header: dict[str, Any]) -> None:
        for name in ("projection", "centre", "inverse"):
            arrays[f"member.0.{name}"] = arrays[f"member.0.{name}"][:-1]

    with pytest.raises(ModelFileError, match="bank of convol"):
        load(forged(path, tmp_path / "forged.pdftime", fewer))


@pytest.mark.parametrize("preset", ["network", "fast", "strong"])
@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_unequal_lengths_and_missing_values_are_kept(lengths: str, preset: str, tmp_path: Path) -> None:
    series = [case[:, : 4 + number % 6] for number, case in enumerate(X)]
    series[3] = np.where(np.arange(series[3].shape[1]) == 1, np.nan, series[3])
    fresh = [FRESH[0], FRESH[1][:, :3], np.tile(FRESH[2], 2), series[3]]
    model = fit(series, lengths=lengths, preset=preset)
    model.save(tmp_path / "model.pdftime")
    loaded = load(tmp_path / "model.pdftime")
    assert_same(model, loaded, fresh)
    assert explanations(model, fresh) == explanations(loaded, fresh)
    for number, place in enumerate(loaded.model_.exemplars.numbers):
        kept = loaded.model_.exemplars.cases.series(number)
        np.testing.assert_array_equal(kept, series[place])


@pytest.mark.parametrize(
    "classes",
    [
        ["ä", "b\n", '"c"'],
        [3, 1, 2],
        [2.0, 1.0, 0.0],
        np.array([9, 8, 7], np.uint8),
        np.array(["x", "yy", "zzz"], dtype="U20"),
        np.array([b"x", b"\xff\x00z", b"y"]),
        [1, "1", b"1"],
        [2**80, 1, 0],
    ],
    ids=["text", "whole", "float", "uint8", "wide text", "bytes", "mixed", "beyond 64 bits"],
)
def test_classes_of_every_kind_are_kept(classes: Any, tmp_path: Path) -> None:
    y = classes[np.arange(15) % 3] if isinstance(classes, np.ndarray) else classes * 5
    model = fit(y=y)
    model.save(tmp_path / "model.pdftime")
    assert_same(model, load(tmp_path / "model.pdftime"))


def test_boolean_classes_are_kept(tmp_path: Path) -> None:
    model = fit(y=Y == "a")
    model.save(tmp_path / "model.pdftime")
    assert_same(model, load(tmp_path / "model.pdftime"))


def test_channel_names_are_kept(tmp_path: Path) -> None:
    model = fit(check_series(X, channel_names=["flow", "Druck (°C)"]))
    model.save(tmp_path / "model.pdftime")
    assert load(tmp_path / "model.pdftime").model_.channel_names == ("flow", "Druck (°C)")


def test_same_model_gives_the_same_bytes_and_so_does_a_loaded_one(saved: Path, tmp_path: Path) -> None:
    model = load(saved)
    model.save(tmp_path / "one.pdftime")
    load(tmp_path / "one.pdftime").save(tmp_path / "two.pdftime")
    assert saved.read_bytes() == (tmp_path / "one.pdftime").read_bytes() == (tmp_path / "two.pdftime").read_bytes()


@pytest.mark.parametrize("preset", ["network", "fast", "strong"])
def test_a_loaded_model_trains_again_as_the_saved_one_would(preset: str, tmp_path: Path) -> None:
    model = fit(n_members=2, settings={} if preset == "fast" else {"n_prototypes": 2, "batch_size": 4}, preset=preset)
    model.save(tmp_path / "model.pdftime")
    loaded = PDFTimeClassifier.load(tmp_path / "model.pdftime")
    again = loaded.fit(X, Y)
    assert again.predict_proba(FRESH).tobytes() == model.predict_proba(FRESH).tobytes()


def test_saving_replaces_the_old_file(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.pdftime"
    path.write_bytes(b"old")
    load(saved).save(path)
    assert path.read_bytes() == saved.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["model.pdftime"]


# Backbones.


def backbone() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(9), nn.GELU())


def test_a_model_with_a_backbone_of_yours_needs_it_again(tmp_path: Path) -> None:
    path = tmp_path / "model.pdftime"
    model = fit(backbone=backbone(), n_members=2)
    model.save(path)
    assert "pass it, load(path, backbone=module)" in refusal(path)
    given = backbone()
    before = deepcopy(given.state_dict())
    assert_same(model, load(path, backbone=given))
    assert all((given.state_dict()[name] == weight).all() for name, weight in before.items())


@pytest.mark.parametrize("other", [nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(9)), nn.Identity()])
def test_another_backbone_is_refused(other: nn.Module, tmp_path: Path) -> None:
    fit(backbone=backbone()).save(tmp_path / "model.pdftime")
    assert "weights of member 0" in refusal(tmp_path / "model.pdftime", backbone=other)


def test_a_backbone_where_none_was_is_refused(saved: Path) -> None:
    assert "trained with our encoder" in refusal(saved, backbone=backbone())


# Damage.


@pytest.mark.slow
def test_every_prefix_is_refused(saved_network: Path, tmp_path: Path) -> None:
    data = saved_network.read_bytes()
    assert len(data) < 16_000
    path = tmp_path / "part.pdftime"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        refusal(path)


@pytest.mark.slow
def test_every_changed_byte_is_refused(saved_network: Path, tmp_path: Path) -> None:
    data = bytearray(saved_network.read_bytes())
    path = tmp_path / "changed.pdftime"
    chance = random.Random(0)
    for place in range(len(data)):
        bit = 1 << chance.randrange(8)
        data[place] ^= bit
        path.write_bytes(data)
        refusal(path)
        data[place] ^= bit


def test_sampled_damage_is_refused(saved: Path, tmp_path: Path) -> None:
    data = saved.read_bytes()
    path = tmp_path / "changed.pdftime"
    chance = random.Random(1)
    for _ in range(200):
        place = chance.randrange(len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :])
        refusal(path)
        path.write_bytes(data[:place])
        refusal(path)
    path.write_bytes(data + b"\0")
    refusal(path)


# Forgeries: a right digest over content that does not fit.


def test_missing_and_extra_tensors_are_refused(saved: Path, rewritten: Callable[..., Path]) -> None:
    arrays, _ = read_container(saved, kind="model")
    for name in arrays:
        refusal(rewritten(lambda arrays, header, name=name: arrays.pop(name)))
    for name in ("member.0.extra", "member.1.norm.weight", "exemplars.more", "anything", ""):
        refusal(rewritten(lambda arrays, header, name=name: arrays.update({name: np.zeros(2, np.float32)})))


def test_tensors_of_another_type_or_shape_are_refused(saved: Path, rewritten: Callable[..., Path]) -> None:
    arrays, _ = read_container(saved, kind="model")
    for name, array in arrays.items():
        if name != "exemplars.X":  # series may be of single or double precision
            other = np.float64 if array.dtype == np.float32 else np.float32
            refusal(rewritten(lambda arrays, header, n=name, t=other: arrays.update({n: arrays[n].astype(t)})))
        refusal(rewritten(lambda arrays, header, n=name: arrays.update({n: arrays[n][..., None]})))
        if not array.ndim:  # a single number has no parts
            continue
        refusal(rewritten(lambda arrays, header, n=name: arrays.update({n: arrays[n][:-1]})))
        refusal(rewritten(lambda arrays, header, n=name: arrays.update({n: np.repeat(arrays[n], 2, axis=-1)})))


@pytest.mark.parametrize(
    "entry", ["numbers", "codes", "lengths", "0.0.position", "0.1.position", "0.1.wrong_position"]
)
@pytest.mark.parametrize("value", [-1, 2**62])
def test_numbers_out_of_range_are_refused(entry: str, value: int, rewritten: Callable[..., Path]) -> None:
    def change(arrays: dict[str, Any], header: dict[str, Any]) -> None:
        name = f"exemplars.{entry}"
        if name not in arrays:  # a bank has one level; it stands before the network
            name = f"exemplars.1{entry[1:]}"
        arrays[name] = arrays[name].copy()
        arrays[name].flat[0] = value

    refusal(rewritten(change))


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, as keys from the top."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from places(item, (*above, key))


STRANGE = [None, True, -1, 2**70, 1e300, 1e-320, "x", "<U99999999", [], {"a": 1}]


@pytest.mark.slow
def test_a_strange_header_is_refused_or_harmless(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value of the header is replaced by strange ones: a sentence, or a model that works."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing here must survive a power cut
    arrays, header = read_container(saved, kind="model")
    path = tmp_path / "strange.pdftime"
    refused = 0
    for place in places(header):
        if ("history" in place or "metrics" in place) and len(place) > 4:
            continue  # what a record says is not interpreted
        of_views = (place[0] == "members" and "history" not in place) or {"bank", "views"} & set(place)
        if saved.stem == "both" and not of_views:
            continue  # as with one view
        for value in STRANGE:
            strange = deepcopy(header)
            target = strange
            for key in place[:-1]:
                target = target[key]
            target[place[-1]] = value
            write_container(path, arrays, strange, kind="model")
            try:
                model = load(path)
            except ModelFileError:
                refused += 1
                continue
            assert model.predict_proba(FRESH).shape == (7, len(model.classes_))
            model.explain(FRESH[:1])[0].summary()
            model.explain_model().to_json()
            assert isinstance(model.history_, list)
            assert isinstance(model.metrics_, dict)
    assert refused > (60 if saved.stem == "both" else 400)


def test_every_part_of_the_header_is_needed(saved: Path, rewritten: Callable[..., Path]) -> None:
    _, header = read_container(saved, kind="model")
    for place in places(header):
        if isinstance(place[-1], str) and place[0] != "metrics" and len(place) <= 3:

            def remove(arrays: dict[str, Any], header: dict[str, Any], place: tuple[Any, ...] = place) -> None:
                for key in place[:-1]:
                    header = header[key]
                del header[place[-1]]

            refusal(rewritten(remove))


def test_classes_that_are_not_different_are_refused(rewritten: Callable[..., Path]) -> None:
    assert "its classes" in refusal(
        rewritten(lambda arrays, header: header["classes"].update({"values": ["a", "b", "a"]}))
    )


def test_a_checkpoint_is_not_a_model(saved: Path, tmp_path: Path) -> None:
    arrays, header = read_container(saved, kind="model")
    write_container(tmp_path / "run.pdftime", arrays, header, kind="checkpoint")
    assert "is a checkpoint, not a model" in refusal(tmp_path / "run.pdftime")


def test_a_newer_format_is_refused(
    saved: Path, rewritten: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as future:
        future.setattr("pdftime.container.FORMAT_VERSION", FORMAT_VERSION + 1)
        path = rewritten(lambda arrays, header: None)
    assert "Upgrade pdftime" in refusal(path)


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("exploded",)


def test_a_renamed_pickle_is_refused_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.pdftime"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Bomb(), protocol))
        refusal(path)
    torch.save({"weight": Bomb()}, path)
    refusal(path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04.", b"{}", bytes(100), b"\xff" * 100])
def test_foreign_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.pdftime").write_bytes(content)
    refusal(tmp_path / "model.pdftime")


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "absent.pdftime")
    assert "folder" in refusal(tmp_path)


# Forged banks.


def forged(source: Path, path: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Path:
    arrays, header = read_container(source, kind="model")
    change(arrays, header)
    write_container(path, arrays, header, kind="model")
    return path


@pytest.mark.parametrize(
    "shape", [(2, 0, 16, 6), (2, 10**9, 16, 0), (10**9, 6, 0, 6), (2, 6, 16), (), (2, 6, 16, 6, 1)]
)
def test_biases_of_another_shape_are_refused_without_making_room_for_them(
    shape: tuple[int, ...], saved_both: Path, tmp_path: Path
) -> None:
    empty = {"member.0.bank.biases": np.zeros(shape, np.float32)}
    path = forged(saved_both, tmp_path / "forged.pdftime", lambda arrays, header: arrays.update(empty))
    assert "biases of its bank" in refusal(path)


@pytest.mark.parametrize(
    ("change", "words"),
    {
        "another bank": (lambda arrays, header: header["settings"]["bank"].update(n_groups=512), "bank of convol"),
        "longer series": (lambda arrays, header: header["preparation"].update(n_timepoints=10**12), "another shape"),
        "a network for a bank": (
            lambda arrays, header: header["members"][0].update(view="network"),
            "weights of member 0",
        ),
        "a bank for a network": (lambda arrays, header: header["members"][1].update(view="bank"), "it has no"),
        "an unknown view": (lambda arrays, header: header["members"][1].update(view="tree"), "the view 'tree'"),
        "no share": (lambda arrays, header: header["members"][1].update(share=0.0), "the share 0.0"),
        "an infinite share": (lambda arrays, header: header["members"][0].update(share=1e999), "not written|inf"),
        "a bank of old settings": (lambda arrays, header: header["settings"].pop("bank"), "expected"),
        "a bank of old members": (lambda arrays, header: header["members"][0].pop("view"), "view"),
        "fewer prototypes": (
            lambda arrays, header: arrays.update({"member.0.head.level_0": arrays["member.0.head.level_0"][:2]}),
            "its prototypes have the shape",
        ),
        "prototypes of another width": (
            lambda arrays, header: arrays.update({"member.0.projection": arrays["member.0.projection"][:, :-1]}),
            "its prototypes have the shape",
        ),
    }.values(),
)
def test_a_bank_that_does_not_fit_is_refused(
    change: Callable[..., Any], words: str, saved_both: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=words):
        load(forged(saved_both, tmp_path / "forged.pdftime", change))


# Claims of size cost nothing.


LARGEST = {"d_model": 4096, "branch_width": 1024, "n_inception_layers": 16, "kernel_sizes": [255] * 8, "n_layers": 24}
CLAIMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a huge network": lambda header: header["settings"]["model"].update(LARGEST),
    "many prototypes": lambda header: header["settings"]["model"].update(n_prototypes=[64] * 4),
    "a wide feed-forward": lambda header: header["settings"]["model"].update(feed_forward=16, d_model=4096),
    "long series": lambda header: header["preparation"].update(n_timepoints=10**12),
    "series beyond 64 bits": lambda header: header["preparation"].update(n_timepoints=10**30),
    "long series without a mask": lambda header: (
        header["settings"]["model"].update(frequency_mask=False),
        header["preparation"].update(n_timepoints=10**12),
    ),
    "many channels": lambda header: header["preparation"].update(mean=[0.0] * 10**5, scale=[1.0] * 10**5),
    "many classes": lambda header: header["classes"].update(dtype="<i8", values=list(range(10**5))),
    "wide classes": lambda header: header["classes"].update(dtype="<U400000000"),
    "many members": lambda header: header.update(members=header["members"] * 1000),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_file_gets_no_more_memory_than_it_brings(claim: str, rewritten: Callable[..., Path]) -> None:
    path = rewritten(lambda arrays, header: CLAIMS[claim](header))
    with pytest.raises(ModelFileError):  # warm: imports and caches are not what is measured
        load(path)
    tracemalloc.start()
    try:
        refusal(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


CONFINED = """
import resource, sys
from pdftime import load
from pdftime.errors import ModelFileError
from pdftime.explain.report.model_content import facts_of
load(sys.argv[1])
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20), resource.RLIM_INFINITY))
for path in sys.argv[2:]:
    try:
        load(path)
    except ModelFileError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to see and limit memory")
def test_claims_are_refused_within_half_a_gigabyte(saved: Path, tmp_path: Path) -> None:
    arrays, header = read_container(saved, kind="model")
    paths = []
    for number, claim in enumerate(CLAIMS.values()):
        claimed = deepcopy(header)
        claim(claimed)
        paths.append(tmp_path / f"{number}.pdftime")
        write_container(paths[-1], arrays, claimed, kind="model")
    terabytes = tmp_path / "terabytes.pdftime"
    terabytes.write_bytes((2**42).to_bytes(8, "little") + saved.read_bytes()[8:])
    paths.append(terabytes)
    run = subprocess.run(
        [sys.executable, "-c", CONFINED, saved, *paths], capture_output=True, text=True, check=True, timeout=120
    )
    assert len(run.stdout.splitlines()) == len(paths)


def test_a_model_does_not_fit_on_a_full_disk(saved: Path, tmp_path: Path) -> None:
    model = load(saved)
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    path = tmp_path / "model.pdftime"
    try:
        path.write_bytes(b"old")
        with pytest.raises(ModelFileError, match="No space left on device"):
            model.save(path)
        assert path.read_bytes() == b"old"
        assert [each.name for each in tmp_path.iterdir()] == ["model.pdftime"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


# Older formats.


@pytest.mark.parametrize("path", sorted(KEPT.glob("model_v*.pdftime")), ids=lambda path: path.stem)
def test_models_of_every_format_version_keep_their_predictions(path: Path) -> None:
    kept = json.loads(path.with_suffix(".json").read_text())
    model, fresh = load(path), np.array(kept["X"])
    assert model.classes_.tolist() == kept["classes"]
    np.testing.assert_allclose(model.predict_proba(fresh), kept["probabilities"], rtol=0, atol=1e-4)
    assert model.model_.weights == pytest.approx(kept.get("weights", [0.5, 0.5]))
    for explanation, expected in zip(model.explain(fresh), kept["best_matches"], strict=True):
        best = explanation.best_match
        assert [neighbour.index for neighbour in best.neighbours] == expected["neighbours"]
        assert best.similarity == pytest.approx(expected["similarity"], abs=1e-4)
        assert (best.usage, best.purity) == (expected.get("usage"), expected.get("purity"))
        assert (best.wrong and best.wrong.index) == expected.get("wrong")
    view = model.explain_model()
    assert view.agreement == kept.get("agreement")
    assert (None if view.confusion is None else view.confusion.tolist()) == kept.get("confusion")
    assert [each.epochs.tolist() for each in view.evolution] == kept.get("epochs", [])


def test_a_model_of_every_format_version_is_kept() -> None:
    versions = [str(version) for version in range(1, FORMAT_VERSION + 1)]
    kept = {path.stem.removeprefix("model_v").partition("_")[0] for path in KEPT.glob("model_v*.pdftime")}
    assert sorted(kept) == versions
    assert {path.stem for path in KEPT.glob("model_v3*.pdftime")} == {"model_v3_bank", "model_v3_both"}
    assert len(load(KEPT / "model_v4.pdftime").model_.members) == 3
    assert {path.stem for path in KEPT.glob("model_v*.pdftime") if not load(path).model_.averaged} == {"model_v5"}
    for path in KEPT.glob("model_v*.pdftime"):
        assert f'"format_version":"{path.stem.removeprefix("model_v")[0]}"'.encode() in path.read_bytes()
    assert all(path.stat().st_size < 60_000 for path in KEPT.iterdir())
