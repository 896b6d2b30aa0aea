"""The commands. Each one imports what it needs when it runs, so that --help is quick."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regbayes._version import __version__
from regbayes.cli._problem import Problem, suggest

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Latent-variable models that find their own size and learn with a margin.",
)

File = Annotated[str, typer.Argument(metavar="FILE", help="CSV (.csv, .tsv) or Parquet.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="What `regbayes fit -o` wrote.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"regbayes {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it, and stop.")
    ] = False,
) -> None:
    pass


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def fit(
    context: typer.Context,
    file: File,
    model: Annotated[
        str | None, typer.Option(help="Name of a class; without, one is proposed.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    sequence_id: Annotated[
        str | None, typer.Option(help="Column that says which sequence a row is in.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column to sort a sequence by: numbers or dates.")
    ] = None,
    views: Annotated[
        str | None, typer.Option(help='Views and their columns: "image=px*,words=w_*".')
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Columns to leave out, with commas between.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The model file.")] = None,
    test_share: Annotated[float, typer.Option(help="Share of the data to hold out.")] = 0.25,
    use_all: Annotated[bool, typer.Option("--all", help="Fit to all; hold nothing out.")] = False,
    seed: Annotated[int, typer.Option(help="Of the split and of the model.")] = 0,
    parameters: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the model: n_draws=50.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder from which `regbayes resume` can go on.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a file, and compare it with simple ones on held-out data.

    Any parameter of the model is an option too, such as --n-draws 50; `regbayes inspect NAME`
    lists them. The model that is saved is the one that was measured, fitted to the training part;
    with --all it is fitted to all data and not measured.
    """
    from regbayes.cli import _models
    from regbayes.cli._fit import Request

    files, options = _models.split_extra([file, *context.args])
    for each in parameters or []:
        name, equals, value = each.partition("=")
        if not equals:
            raise Problem(f"--set has {each!r}", "write --set n_draws=50")
        options[name] = value
    if len(files) != 1:
        raise Problem(
            f"fit reads one file, and got {', '.join(files) or 'none'}",
            "name one, and give every option its value",
        )
    request = Request(
        files[0],
        model,
        label,
        sequence_id,
        time,
        views,
        [name.strip() for each in ignore or [] for name in each.split(",")],
        None if output is None else str(output),
        test_share,
        use_all,
        seed,
        options,
        None if checkpoint is None else str(checkpoint),
    )
    _fit(request, as_json, quiet)


@app.command()
def resume(
    checkpoint: Annotated[Path, typer.Argument(help="The folder given to fit --checkpoint.")],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a fit that was interrupted."""
    from regbayes.cli._fit import Request

    _fit(Request.read(checkpoint), as_json, quiet)


def _fit(request: Any, as_json: bool, quiet: bool) -> None:
    from regbayes.cli import _fit

    console = _console()
    say = (lambda text: None) if as_json else console.print
    facts = _fit.run(request, quiet or as_json, say)
    if as_json:
        _print_json(facts)
        return
    unit = {"row": "rows", "step": "steps", "sequence": "sequences"}[facts["unit"]]
    say(
        f"{facts['training_rows']} rows to train on, {facts['held_out_rows']} held out, "
        f"{facts['features']} columns, {facts['seconds']:.1f} s"
    )
    for name, number in facts["found"].items():
        say(f"{name.removeprefix('n_')} found: [bold]{number}[/]")
    if "accuracy" in facts:
        _print_table(
            console,
            (f"accuracy on held-out {unit}", ""),
            [(facts["model"], f"{facts['accuracy']:.3f}")]
            + [(name, f"{value:.3f}") for name, value in facts["baselines"].items()],
        )
    if "held_out_log_density_per_step" in facts:
        say(f"log density of a held-out step: {facts['held_out_log_density_per_step']:.3f}")
    for note in facts["notes"]:
        console.print(f"note: {note}", markup=False)
    if request.output is None:
        say("Nothing was saved: -o FILE keeps the model.")
    else:
        console.print(f"Saved: {request.output}", markup=False)


@app.command()
def predict(
    model: Model,
    file: File,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV of the answers; else stdout.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Predict labels, or hidden states, for a file with the columns of the training."""
    from regbayes.cli import _tables, _use

    _tables.check_output(output)
    loaded = _use.load(model)
    found, facts = _use.predict(loaded, _use.read_for(loaded, Path(file)))
    if output is not None:
        found.to_csv(output, index=False)
        facts["output"] = str(output)
    if as_json:
        _print_json(facts if output is not None else facts | {"rows": found.to_dict("records")})
    elif output is None:
        sys.stdout.write(found.to_csv(index=False))
    else:
        accuracy = f", accuracy {facts['accuracy']:.3f}" if "accuracy" in facts else ""
        typer.echo(f"{facts['answers']} answers{accuracy}. Saved: {output}")


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file, or the name of a class.")],
    as_json: Json = False,
) -> None:
    """Say what a model file holds, or which parameters a class of models has."""
    from regbayes.cli import _models, _use

    known = model in _models.available() and not Path(model).exists()
    told = _use.describe_class(model) if known else _use.describe(_use.load(Path(model)))
    if as_json:
        _print_json(told)
        return
    shown = {name: value for name, value in told.items() if value not in (None, [], {})}
    rows: list[tuple[str, str]] = []
    for name, value in shown.items():
        if isinstance(value, dict):
            rows += [(f"{name}: {key}", _in_words(each)) for key, each in value.items()]
        else:
            rows.append((name, _in_words(value)))
    _print_table(_console(), ("", ""), rows)


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_in_words(each)}" for key, each in value.items())
    if isinstance(value, list):
        more = f", and {len(value) - 20} more" if len(value) > 20 else ""
        return ", ".join(map(str, value[:20])) + more
    return str(value)


@app.command()
def report(
    model: Model,
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Write a page about what a model learnt, in one HTML file."""
    from regbayes.cli import _tables, _use

    _tables.check_output(output)
    loaded = _use.load(model)
    _use.report(loaded, _use.read_for(loaded, Path(file)), output)
    if as_json:
        _print_json({"output": str(output)})
    else:
        typer.echo(f"Saved: {output}")


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="Without, all are listed.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="CSV or Parquet.")] = None,
    seed: Annotated[int, typer.Option(help="Of the synthetic ones.")] = 0,
    as_json: Json = False,
) -> None:
    """List the data sets, or write one to a file."""
    from regbayes.cli import _data, _tables

    if name is None:
        known = _data.listing()
        if as_json:
            _print_json(known)
        else:
            _print_table(_console(), ("data set", ""), list(known.items()))
        return
    if output is None:
        raise Problem("datasets NAME writes a file", f"say which, as in -o {name}.csv")
    _tables.check_output(output)
    table = _data.as_table(name, seed)
    _tables.write_table(table, output)
    facts = {"rows": len(table), "columns": list(table.columns), "output": str(output)}
    if as_json:
        _print_json(facts)
    else:
        typer.echo(f"{len(table)} rows, columns {_in_words(facts['columns'])}. Saved: {output}")


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Without, all are listed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small: does it work?")] = False,
    as_json: Json = False,
) -> None:
    """Run an experiment of the papers, in a checkout of the repository."""
    import subprocess

    from regbayes.cli import _data

    root, known = _data.experiments()
    if name is None:
        if as_json:
            _print_json({"experiments": known})
        else:
            typer.echo("\n".join(known))
        return
    if name not in known:
        raise Problem(f"there is no experiment '{name}'", suggest(name, known, "there are"))
    command = [sys.executable, "-m", "experiments", name, *["--quick"] * quick]
    done = subprocess.run(command, cwd=root, stdout=sys.stderr if as_json else None)
    if as_json:
        _print_json({"experiment": name, "exit_code": done.returncode})
    raise typer.Exit(1 if done.returncode else 0)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture.")] = Path("demo.png"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and draws.")] = False,
) -> None:
    """Find hidden sub-populations in made-up data, and draw them."""
    from regbayes.cli import _tables

    _tables.check_output(output)
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise Problem("the demo draws with matplotlib", 'pip install "regbayes[plot]"') from error
    from regbayes.demo import main

    main(output, quick)


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


def _print_table(console: Any, titles: tuple[str, str], rows: list[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, box=None, show_header=any(titles))
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, default=str))
