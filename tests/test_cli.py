"""The command line: every command, every example in its help, and how it fails."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

import pdftime
from pdftime import PDFTimeClassifier, check_series, load, read_series, write_series
from pdftime.cli import app, demo, main
from pdftime.cli.commands import commands_of
from pdftime.cli.demo import line_drawing
from pdftime.cli.evaluate import measure
from pdftime.cli.labels import as_classes, codes_by_text, names_of
from pdftime.cli.options import DEFAULTS, SENTENCES, changes_of, in_flags
from pdftime.config import value_of
from pdftime.container import FORMAT_VERSION
from pdftime.data.files import SUFFIXES
from pdftime.data.synthetic import make_problem
from pdftime.errors import ConfigError, ModelFileError

COMMANDS = commands_of(get_command(app))
EXAMPLES = [example for command in COMMANDS.values() for example in command.epilog.split("\n\n")[1:]]
QUICK_EXAMPLES = [each for each in EXAMPLES if not each.startswith("pdftime bench ")]  # those: tests/bench
TINY = shlex.split(
    "--preset network --max-epochs 2 --d-model 8 --set branch_width=4 --set n_inception_layers=1 --threads 1"
)
START = [sys.executable, "-c", "from pdftime.cli import main; main()"]


def invoke(*arguments: str | Path, code: int = 0) -> Result:
    """Run a command in this process; its exit code must be `code`."""
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


def complaint(*arguments: str | Path, code: int = 1) -> str:
    """The one line on standard error of a command that fails; standard output must stay empty."""
    result = invoke(*arguments, code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the examples name, and a tiny model."""
    folder = tmp_path_factory.mktemp("shelf")
    problem = make_problem("frequency", n_cases=30, n_timepoints=60, n_fresh=24)
    train, fresh = problem.train, problem.fresh
    for name in ("train.csv", "train.ts"):
        write_series(train, folder / name)
    for name in ("fresh.csv", "valid.ts"):
        write_series(fresh, folder / name)
    for name in ("new.csv", "new.ts"):
        write_series(check_series(fresh.X), folder / name)
    write_series(train, folder / "log.parquet", form="long", case_column="id")
    np.savez(folder / "archive.npz", X_train=train.X, y_train=train.y, X_test=fresh.X, y_test=fresh.y)
    invoke("fit", folder / "train.csv", "-o", folder / "model.pdftime", *TINY)
    return folder


@pytest.fixture
def here(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shelf to work in."""
    folder = tmp_path / "here"
    shutil.copytree(shelf, folder)
    monkeypatch.chdir(folder)
    return folder


# Help and documentation


@pytest.mark.parametrize("example", QUICK_EXAMPLES)
def test_every_example_in_the_help_works(here: Path, monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    monkeypatch.setattr(demo, "N_EXPLAINED", 2)
    monkeypatch.setattr(demo, "N_REPORTED", 2)
    program, command, *arguments = shlex.split(example)
    result = invoke(command, *arguments, *(TINY if command == "fit" else []))
    assert program == "pdftime"
    if "--json" in arguments:
        json.loads(result.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    assert f"pdftime {name}" in invoke(*name.split(), "--help").stdout
    assert any(example.startswith(f"pdftime {name}") for example in EXAMPLES)
    assert "--json" in [option for param in COMMANDS[name].params for option in param.opts]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_means_and_what_it_takes(name: str) -> None:
    for param in COMMANDS[name].params:
        assert param.help, param.name
        assert getattr(param, "is_flag", False) or param.metavar, param.name


def test_examples_fit_on_a_line() -> None:
    assert max(map(len, EXAMPLES)) <= 78


def test_the_page_is_what_the_commands_say() -> None:
    script = Path(__file__).parents[1] / "docs" / "make_cli_page.py"
    spec = importlib.util.spec_from_file_location("make_cli_page", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run: python docs/make_cli_page.py"


def test_every_setting_has_a_sentence_and_a_default() -> None:
    assert set(SENTENCES) == set(DEFAULTS)


def test_column_defaults_are_those_of_read_series() -> None:
    for name, command in COMMANDS.items():
        for param in command.params:
            if param.name in ("label_column", "case_column", "time_column"):
                assert param.default == inspect.signature(read_series).parameters[param.name].default, name


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from pdftime.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'sklearn', 'numpy', 'pyarrow') if name in sys.modules])\n"
    )
    for arguments in (["--help"], ["fit", "--help"], ["bench", "run", "--help"], ["--version"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"


def test_version() -> None:
    assert invoke("--version").stdout == f"pdftime {pdftime.__version__}\n"


# fit


def test_fit_says_what_it_read_measured_and_wrote(here: Path) -> None:
    said = invoke("fit", "train.csv", "-o", "new.pdftime", "--validation", "fresh.csv", *TINY).stdout
    assert "train.csv: 30 cases, 1 channel, 60 time points." in said
    assert "3 classes: medium 10, quick 10, slow 10." in said
    assert "fresh.csv: 24 cases" in said
    assert "Validation: accuracy" in said
    assert "calibration error" in said
    assert "Saved new.pdftime" in said
    assert "pdftime evaluate new.pdftime" in said
    assert load("new.pdftime").classes_.tolist() == ["medium", "quick", "slow"]


def test_fit_on_few_cases_says_that_nothing_was_validated(here: Path) -> None:
    assert "give --validation FILE" in invoke("fit", "train.csv", "-o", "new.pdftime", *TINY).stdout


def test_fit_json_holds_the_metrics(here: Path) -> None:
    arguments = ["-o", "new.pdftime", "--validation", "valid.ts", "--members", "2", "--json"]
    result = invoke("fit", "train.csv", *arguments, *TINY)
    told = json.loads(result.stdout)
    assert result.stderr == ""
    assert told["train"]["n_cases"] == 30
    assert told["validation"]["n_cases"] == 24
    assert [member["n_validation"] for member in told["metrics"]["members"]] == [24, 24]
    assert told["metrics"] == load("new.pdftime").metrics_


def test_quiet_fit_prints_nothing(here: Path) -> None:
    assert invoke("fit", "train.csv", "-o", "new.pdftime", "--quiet", *TINY).output == ""
    assert Path("new.pdftime").exists()


def test_flags_and_set_reach_the_settings(here: Path) -> None:
    arguments = "--preset paper --max-epochs 1 --patience 3 --batch-size 7 --learning-rate 0.01 --d-model 16"
    more = "--n-layers 1 --n-prototypes 1,2 --encoder none --scaling series --lengths pad --class-weight balanced"
    pairs = "--set branch_width=2 --set kernel_sizes=3,5 --set frequency_mask=False --set max_tokens=20"
    invoke("fit", "train.csv", "-o", "new.pdftime", *shlex.split(f"{arguments} {more} {pairs}"))
    settings = load("new.pdftime").model_.settings
    assert (settings.training.max_epochs, settings.training.patience, settings.training.batch_size) == (1, 3, 7)
    assert settings.training.schedule == "constant"  # the paper's
    assert (settings.model.d_model, settings.model.n_layers, settings.model.n_prototypes) == (16, 1, (1, 2))
    assert (settings.model.encoder, settings.prepare.scaling, settings.prepare.lengths) == ("none", "series", "pad")
    assert (settings.model.kernel_sizes, settings.model.frequency_mask) == ((3, 5), False)


def test_the_same_seed_gives_the_same_model_and_that_of_the_estimator(here: Path) -> None:
    for name in ("a.pdftime", "b.pdftime"):
        invoke("fit", "train.csv", "-o", name, "--seed", "3", *TINY)
    invoke("fit", "train.csv", "-o", "c.pdftime", "--seed", "4", *TINY)
    train, new = read_series("train.csv"), read_series("new.csv")
    settings = {"max_epochs": 2, "d_model": 8, "branch_width": 4, "n_inception_layers": 1}
    own = PDFTimeClassifier(preset="network", settings=settings, random_state=3, n_threads=1).fit(train, train.y)
    a, b, c = (load(f"{name}.pdftime").predict_proba(new) for name in "abc")
    assert (a == b).all()
    assert (a == own.predict_proba(new)).all()
    assert (a != c).any()


def test_validation_labels_of_another_kind_are_compared_by_text(here: Path) -> None:
    cases = read_series("train.csv")
    codes = np.unique(cases.y, return_inverse=True)[1]  # type: ignore[arg-type]
    write_series(check_series(cases.X, codes), "numbers.csv")
    write_series(check_series(cases.X, codes), "texts.ts")
    invoke("fit", "numbers.csv", "-o", "new.pdftime", "--validation", "texts.ts", *TINY)
    assert load("new.pdftime").classes_.tolist() == [0, 1, 2]
    write_series(check_series(cases.X, codes + 1), "others.ts")
    assert "'3'" in complaint("fit", "numbers.csv", "-qo", "x.pdftime", "--validation", "others.ts", *TINY)


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".ts.gz", ".csv.gz"])
def test_every_format_is_converted_learned_and_predicted(here: Path, suffix: str) -> None:
    invoke("convert", "train.ts", f"data{suffix}")
    invoke("fit", f"data{suffix}", "-o", "new.pdftime", "--json", *TINY)
    rows = json.loads(invoke("predict", "new.pdftime", f"data{suffix}", "--json").stdout)
    assert len(rows) == 30
    assert rows == json.loads(invoke("predict", "new.pdftime", "train.ts", "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fit absent.csv -o new.pdftime", "absent.csv cannot be read"),
        ("fit . -o new.pdftime", "no known file type"),
        ("fit new.csv -o new.pdftime", "new.csv has no labels. Name their column with --label-column"),
        ("fit train.csv -o new.pdftime --validation new.csv", "new.csv has no labels"),
        ("fit train.csv -o new.pdftime --label-column activity", "--label-column"),
        ("fit archive.npz -o new.pdftime", "--part train or --part test"),
        ("fit train.ts -o new.pdftime --form long", "leave --form long out"),
        ("fit train.csv -o absent/new.pdftime", "there is no folder absent"),
        ("fit train.csv -o train.csv/new.pdftime", "there is no folder train.csv"),
        ("fit train.csv -o .", "it is a folder"),
        ("fit train.csv -o new.csv", "would look like a data file"),
        ("fit train.csv -o new.pdftime --checkpoint absent/run", "absent/run cannot be written"),
        ("fit train.csv -o new.pdftime --checkpoint new.pdftime", "also an input"),
        ("fit train.csv -o new.pdftime --checkpoint train.csv", "also an input"),
        ("fit train.csv -o new.pdftime --checkpoint model.pdftime", "Add --resume to go on from it"),
        (
            "fit train.csv -o new.pdftime --preset network --checkpoint model.pdftime --resume -q",
            "is a model, not a checkpoint",
        ),
        ("predict absent.pdftime new.csv", "absent.pdftime could not be read"),
        ("predict train.csv new.csv", "is not a pdftime file"),
        ("predict . new.csv", "folder"),
        ("predict model.pdftime absent.csv", "absent.csv cannot be read"),
        ("predict model.pdftime new.csv -o new.txt", ".csv, .parquet, .json"),
        ("predict model.pdftime new.csv -o new.csv", "also an input"),
        ("predict model.pdftime new.csv -o absent/out.csv", "there is no folder absent"),
        ("evaluate model.pdftime new.csv", "has no labels"),
        ("info absent.pdftime", "absent.pdftime could not be read"),
        ("info absent.csv", "absent.csv cannot be read"),
        ("info .", "folder"),
        ("convert train.ts train.xlsx", "no known file type"),
        ("convert train.ts absent/train.csv", "there is no folder absent"),
        ("convert train.ts new.ts --out-form long", "leave --out-form long out"),
        ("demo -o train.csv", "train.csv cannot be made a folder"),
        ("demo -o .", "is not of a demo"),
    ],
)
def test_what_cannot_work_is_one_line_and_leaves_nothing(here: Path, arguments: str, words: str) -> None:
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    assert words in complaint(*shlex.split(arguments))
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--d-model 0", "d_model is 0"),
        ("--encoder magic", "'attention', 'window', 'none'"),
        ("--n-prototypes two", "n_prototypes is 'two'"),
        ("--preset best", "Unknown preset 'best'"),
        ("--set dropot=0.1", "Unknown settings ['dropot']"),
        ("--set dropout", "name=value"),
        ("--set d_model=8 --d-model 8", "d_model is given twice"),
        ("--class-weight heavy", "class_weight is 'heavy'"),
        ("--max-time 0", "max_time_s is 0.0"),
        ("--resume", "--resume needs --checkpoint"),
        ("--checkpoint new.ckpt", "checkpoint: no effect with preset 'default'"),
        ("--max-epochs 3", "max_epochs: no effect with preset 'default'"),
    ],
)
def test_wrong_settings_are_wrong_usage(here: Path, arguments: str, words: str) -> None:
    result = invoke("fit", "train.csv", "-o", "new.pdftime", *shlex.split(arguments), code=2)
    assert words in result.stderr
    assert not Path("new.pdftime").exists()


@pytest.mark.parametrize(
    "arguments",
    ["nothing", "fit", "fit train.csv", "predict model.pdftime", "fit train.csv -o m --form tall", "info --what"],
)
def test_wrong_usage_is_exit_code_2(here: Path, arguments: str) -> None:
    result = invoke(*shlex.split(arguments), code=2)
    assert result.stdout == ""
    assert "Usage" in result.stderr


def test_a_model_that_cannot_be_saved_in_its_place_is_saved_elsewhere(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, folder = PDFTimeClassifier.save, here / "gone"
    folder.mkdir()

    def fails_there(self: PDFTimeClassifier, path: Path) -> None:
        if path.parent.name == "gone":
            raise ModelFileError(f"{path} could not be written: the disk is full.")
        save(self, path)

    monkeypatch.setattr(PDFTimeClassifier, "save", fails_there)
    result = invoke("fit", "train.csv", "-o", "gone/new.pdftime", "--quiet", *TINY, code=1)
    refuge = result.stderr.split("safe in ")[1].strip().removesuffix(".")
    assert load(refuge).classes_.tolist() == ["medium", "quick", "slow"]
    shutil.rmtree(Path(refuge).parent)


def test_an_interrupted_fit_says_how_to_go_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PDFTimeClassifier, "fit", interrupted)
    without = invoke("fit", "train.csv", "-o", "new.pdftime", code=130)
    assert "nothing was saved" in without.stderr
    shutil.copy("model.pdftime", "run.checkpoint")
    arguments = ["fit", "train.csv", "-o", "new.pdftime", "--checkpoint", "run.checkpoint", "--resume"]
    assert "with --resume" in invoke(*arguments, code=130).stderr


@pytest.mark.slow
def test_a_killed_fit_that_is_resumed_equals_an_uninterrupted_one(here: Path) -> None:
    settings = shlex.split(
        "--preset network --d-model 8 --set branch_width=4 --threads 1 --patience 500 --max-epochs 30"
    )
    arguments = ["fit", "train.csv", "--validation", "fresh.csv", "--members", "2", *settings]
    often = "import pdftime.training.checkpoint as c; c.EVERY_S = 0.0; from pdftime.cli import main; main()"
    killed = [*arguments, "-o", "killed.pdftime", "--checkpoint", "run.checkpoint"]
    process = subprocess.Popen([sys.executable, "-c", often, *killed], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not Path("run.checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not Path("killed.pdftime").exists()
    said = invoke(*killed, "--resume").stdout
    assert "Going on from run.checkpoint" in said
    invoke(*arguments, "-o", "whole.pdftime")
    ours, theirs = load("killed.pdftime"), load("whole.pdftime")
    new = read_series("new.csv")
    assert (ours.predict_proba(new) == theirs.predict_proba(new)).all()
    assert [record["loss"] for record in ours.history_] == [record["loss"] for record in theirs.history_]


def test_resume_without_a_checkpoint_starts_anew(here: Path) -> None:
    arguments = ["--checkpoint", "run.checkpoint", "--resume"]
    assert "there is no run.checkpoint" in invoke("fit", "train.csv", "-o", "a.pdftime", *arguments, *TINY).stdout
    assert Path("run.checkpoint").exists()


# predict


def test_predictions_are_the_same_in_every_output(here: Path) -> None:
    for name in ("out.csv", "out.parquet", "out.json"):
        told = json.loads(invoke("predict", "model.pdftime", "new.csv", "--explain", "-o", name, "--json").stdout)
        assert told == {"output": name, "n_cases": 24}
    rows = json.loads(Path("out.json").read_text())
    assert list(rows[0]) == ["case", "label", "p_medium", "p_quick", "p_slow", "summary"]
    assert pyarrow.parquet.read_table("out.parquet").to_pylist() == rows
    assert pyarrow.csv.read_csv("out.csv").to_pylist() == rows
    assert json.loads(invoke("predict", "model.pdftime", "new.csv", "--explain", "--json").stdout) == rows
    model, new = load("model.pdftime"), read_series("new.csv")
    assert [row["label"] for row in rows] == model.predict(new).tolist()
    assert [row["p_slow"] for row in rows] == model.predict_proba(new)[:, 2].tolist()
    assert [row["summary"] for row in rows] == [each.summary() for each in model.explain(new)]


def test_predictions_without_output_are_a_table_of_the_first_cases(here: Path) -> None:
    said = invoke("predict", "model.pdftime", "new.csv").stdout
    assert "p_medium" in said
    assert "first 10 of 24 cases" in said
    assert "This series is" not in said
    assert invoke("predict", "model.pdftime", "new.csv", "--explain").stdout.count("This series is") == 10


def test_a_table_of_many_classes_shows_the_highest_probability_only(here: Path) -> None:
    cases = read_series("train.csv")
    write_series(check_series(cases.X, np.arange(30) % 15), "many.csv")
    invoke("fit", "many.csv", "-o", "many.pdftime", "--quiet", *TINY)
    said = invoke("predict", "many.pdftime", "new.csv").stdout
    assert "probability" in said
    assert "p_7" not in said
    assert "confusions among 15 classes" in invoke("evaluate", "many.pdftime", "many.csv").stdout
    assert "and 3 classes more" in invoke("info", "many.csv").stdout


def test_series_that_do_not_fit_the_model_are_refused(here: Path) -> None:
    cases = read_series("new.csv")
    write_series(check_series(cases.X[:, :, :40]), "short.csv")
    assert "40 time points" in complaint("predict", "model.pdftime", "short.csv")
    write_series(check_series(np.repeat(cases.X, 2, axis=1)), "channels.csv")
    assert "2 channels" in complaint("predict", "model.pdftime", "channels.csv", "-o", "out.csv")
    assert not Path("out.csv").exists()


def test_an_old_prediction_file_stays_if_writing_fails(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out.csv").write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in complaint("predict", "model.pdftime", "new.csv", "-o", "out.csv")
    assert Path("out.csv").read_text() == "old"
    assert not list(here.glob(".pdftime*"))


def test_labels_are_printed_as_they_are(here: Path) -> None:
    cases = read_series("train.csv")
    labels = np.array(["[red]", ":smile:", "é"])[np.arange(30) % 3]
    write_series(check_series(cases.X, labels), "odd.parquet")
    said = invoke("fit", "odd.parquet", "-o", "odd.pdftime", *TINY).stdout
    assert ":smile: 10, [red] 10, é 10" in said
    assert "p_[red]" in invoke("predict", "odd.pdftime", "new.csv").stdout
    assert "[red]" in invoke("evaluate", "odd.pdftime", "odd.parquet").stdout


# evaluate


def test_evaluate_scores_what_the_estimator_scores(here: Path) -> None:
    told = json.loads(invoke("evaluate", "model.pdftime", "fresh.csv", "--json").stdout)
    model, fresh = load("model.pdftime"), read_series("fresh.csv")
    assert told["accuracy"] == model.score(fresh, fresh.y)
    assert np.sum(told["confusion"]["n_cases"]) == told["n_cases"] == 24
    assert told["n_unknown"] == 0
    said = invoke("evaluate", "model.pdftime", "fresh.csv").stdout
    assert f"{told['log_loss']:.4f}" in said
    assert "true \\ predicted" in said


def test_unknown_labels_count_as_wrong_and_are_left_out_of_the_log_loss(here: Path) -> None:
    whole = json.loads(invoke("evaluate", "model.pdftime", "fresh.csv", "--json").stdout)
    fresh = read_series("fresh.csv")
    strange = np.where(np.arange(24) % 4 == 0, "strange", fresh.y)  # type: ignore[arg-type]
    write_series(check_series(fresh.X, strange), "strange.csv")
    told = json.loads(invoke("evaluate", "model.pdftime", "strange.csv", "--json").stdout)
    model = load("model.pdftime")
    rest = fresh.take(strange != "strange")
    assert told["unknown_labels"] == ["strange"]
    assert told["n_unknown"] == 6
    assert told["accuracy"] == pytest.approx(model.score(rest, rest.y) * 18 / 24)
    assert told["log_loss"] != whole["log_loss"]
    assert told["confusion"]["true"][-1] == "strange"
    assert "6 cases with labels that the model does not know (strange)" in invoke(
        "evaluate", "model.pdftime", "strange.csv"
    ).stdout.replace("\n", " ")


def test_labels_without_any_known_class_are_refused(here: Path) -> None:
    fresh = read_series("fresh.csv")
    write_series(check_series(fresh.X, np.arange(24) % 2), "other.csv")
    assert "holds the labels 0, 1, none of which is a class" in complaint("evaluate", "model.pdftime", "other.csv")


def test_measures_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import confusion_matrix, log_loss, recall_score

    rng = np.random.default_rng(0)
    probabilities, codes = rng.dirichlet(np.ones(4), 50), rng.integers(0, 3, 50)  # class 3 is predicted, never true
    told = measure(probabilities, codes, codes, np.arange(4))
    predicted = probabilities.argmax(axis=1)
    assert told["balanced_accuracy"] == pytest.approx(
        recall_score(codes, predicted, labels=[0, 1, 2], average="macro")
    )
    assert told["log_loss"] == pytest.approx(log_loss(codes, probabilities, labels=np.arange(4)))
    assert told["confusion"]["n_cases"] == confusion_matrix(codes, predicted, labels=np.arange(4)).tolist()


def test_one_rule_compares_labels_of_different_kinds() -> None:
    texts, numbers, both = np.array(["1", "2"]), np.array([1, 2]), np.array([1, "1"], object)
    assert codes_by_text(numbers, texts).tolist() == [0, 1]
    assert codes_by_text(texts, numbers).tolist() == [0, 1]
    assert codes_by_text(np.array([2.0, 3.0]), texts).tolist() == [1, -1]
    assert codes_by_text(np.array(["true", "False"]), np.array([False, True])).tolist() == [1, 0]
    assert codes_by_text(np.array([b"1"]), texts).tolist() == [0]
    assert codes_by_text(np.array(["1", "2"]), both).tolist() == [1, -1]
    assert names_of(both) == ["1", "'1'"]
    assert as_classes(texts, numbers) == [1, 2]


# info, convert


def test_info_of_a_model(here: Path) -> None:
    told = json.loads(invoke("info", "model.pdftime", "--json").stdout)
    assert told["classes"] == ["medium", "quick", "slow"]
    assert told["n_timepoints"] == 60
    assert told["format_version"] == FORMAT_VERSION
    assert told["library_version"] == pdftime.__version__
    assert told["bytes"] == Path("model.pdftime").stat().st_size
    assert told["changed_settings"] == {
        "views": "network",
        "branch_width": 4,
        "d_model": 8,
        "max_epochs": 2,
        "n_inception_layers": 1,
    }
    said = invoke("info", "model.pdftime").stdout
    assert "a model of 3 classes, 1 channel, 60 time points." in said
    assert "--set d_model" in said


def test_info_of_series(here: Path) -> None:
    problem = make_problem("lengths", n_cases=9, n_timepoints=60, missing=0.1)
    write_series(problem.train, "uneven.ts")
    told = json.loads(invoke("info", "uneven.ts", "--json").stdout)
    assert told["n_timepoints"]["shortest"] < told["n_timepoints"]["longest"] == 60
    assert 0.05 < told["missing"] < 0.15
    assert [each["n_cases"] for each in told["classes"]] == [3, 3, 3]
    said = invoke("info", "uneven.ts").stdout
    assert "to 60 time points" in said
    assert "of the values missing" in said
    assert "no labels" in invoke("info", "new.csv").stdout


def test_info_of_what_is_neither_says_so(here: Path) -> None:
    Path("notes.doc").write_text("hello")
    assert "Nor has it the suffix of a data file" in complaint("info", "notes.doc")


def test_convert_keeps_series_and_labels(here: Path) -> None:
    told = json.loads(invoke("convert", "train.csv", "long.parquet", "--out-form", "long", "--json").stdout)
    assert told["output"] == "long.parquet"
    invoke("convert", "long.parquet", "back.csv")
    assert Path("back.csv").read_bytes() == Path("train.csv").read_bytes()
    cases = read_series("train.csv")
    write_series(check_series(np.repeat(cases.X, 2, axis=1), cases.y), "two.csv")
    Path("two.tsv").write_text("old")
    assert "channel" in complaint("convert", "two.csv", "two.tsv")
    assert Path("two.tsv").read_text() == "old"


# demo


@pytest.mark.slow
def test_the_demo_learns_its_problem_and_names_the_right_moments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = json.loads(invoke("demo", "--json").stdout)
    assert told["seconds"] < 60
    assert told["accuracy"] > 0.95
    assert told["n_on_the_motif"] >= 0.9 * told["n_explained"]
    evaluated = json.loads(invoke("evaluate", told["files"]["model"], told["files"]["fresh"], "--json").stdout)
    assert evaluated["accuracy"] == told["accuracy"]


def test_the_demo_tells_its_story_and_may_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "N_EXPLAINED", 2)
    monkeypatch.setattr(demo, "N_REPORTED", 2)
    invoke("demo")
    said = invoke("demo", "--seed", "1").stdout
    for words in (
        "1. The problem",
        "accuracy",
        "truth",
        "model",
        "was planted at",
        "demo/train.ts",
        "demo/report.html",
        "Next:",
    ):
        assert words in said
    assert max(map(len, said.split("4. Why")[1].splitlines()[1:8])) <= 80
    assert sorted(path.name for path in Path("demo").iterdir()) == [
        "fresh.ts",
        "model.pdftime",
        "report.html",
        "train.ts",
    ]


def test_a_line_drawing_follows_the_series() -> None:
    rising = line_drawing(np.linspace(0, 1, 100), ascii_only=True)
    assert rising[0].rstrip().endswith("*")
    assert rising[-1].startswith("*")
    assert all(len(line) == demo.WIDTH for line in line_drawing(np.zeros(5)))


# The program as a whole


def test_the_program_fails_with_one_line_and_shows_the_traceback_on_request(tmp_path: Path) -> None:
    command = [*START, "info", str(tmp_path / "absent.csv")]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    assert plain.returncode == 1
    assert plain.stdout == ""
    assert plain.stderr.startswith("error: ")
    assert plain.stderr.count("\n") == 1
    debug = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PDFTIME_DEBUG": "1"}
    )
    assert debug.returncode == 1
    assert "Traceback" in debug.stderr


def test_an_unexpected_error_is_one_line_too(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(PDFTimeClassifier, "predict_proba", broken)
    monkeypatch.setattr(sys, "argv", ["pdftime", "predict", "model.pdftime", "new.csv"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert "error: unexpected ZeroDivisionError: by zero" in capsys.readouterr().err


def test_values_are_read_as_they_are_meant() -> None:
    assert [value_of(text) for text in ("1", "0.5", "true", "null", "None", "pad")] == [
        1,
        0.5,
        True,
        None,
        None,
        "pad",
    ]
    assert value_of("9,19") == value_of("[9, 19]") == [9, 19]
    assert changes_of(["d-model=8"], {"patience": None, "n_layers": 2}) == {"d_model": 8, "n_layers": 2}
    with pytest.raises(ConfigError, match="name=value"):
        changes_of(["=1"], {})


def test_arguments_in_messages_become_flags() -> None:
    assert (
        in_flags("name it with label_column=, or say form='wide'.")
        == "name it with --label-column, or say --form wide."
    )
