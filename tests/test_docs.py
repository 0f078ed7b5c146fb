"""The README and the documents: every example is run, and what they show is what came out.

A page's fences run in order, in one namespace and one directory, which begins as a copy of `docs/examples`:

- `python` is executed; with `>>>` prompts it is a doctest;
- `sh`: lines that begin with `tiling ` are carried out as on a terminal of 80 columns, and exit with 0;
- `text` right after either is what that printed, or the message of the `LayoutError` that it raised.

A fence that says `needs=MODULE`, such as ```` ```python needs=jax ````, is left out where that extra is missing.
"""

import contextlib
import doctest
import importlib.util
import inspect
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import tiling
from tiling import LayoutError, errors
from tiling.cli import main

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w+)(?: needs=(\w+))?[^\n]*\n(.*?)^```$", re.M | re.S)
TERMINAL = {"TERM": "dumb", "FORCE_COLOR": "1"}  # rich takes it for a terminal of 80 columns without colours


def run_python(code, names, name):
    """What the code prints, or the message of the error that it raises."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(compile(code, name, "exec"), names)
        except LayoutError as error:
            return out.getvalue() + str(error), error
    return out.getvalue(), None


def run_doctest(code, names, name):
    report = []
    test = doctest.DocTestParser().get_doctest(code, names, name, None, 0)
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append, clear_globs=False)
    assert not failed, "".join(report)
    names.update(test.globs)


def run_shell(lines, name):
    out = ""
    for line in lines.splitlines():
        if line.startswith("tiling "):
            result = CliRunner().invoke(main, shlex.split(line, comments=True)[1:], env=TERMINAL)
            assert result.exit_code == 0, f"{name}: {line}\n{result.output}"
            out += result.stdout
    return out


def tidy(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.mark.parametrize("page", PAGES)
def test_examples(page, tmp_path, monkeypatch):
    text = (ROOT / page).read_text("utf-8")
    shutil.copytree(ROOT / "docs" / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    fences = FENCE.findall(text)
    missing = {module for _, module, _ in fences if module and importlib.util.find_spec(module) is None}
    for i, (kind, module, body) in enumerate(fences):
        if module in missing:
            continue
        shown = fences[i + 1][2] if i + 1 < len(fences) and fences[i + 1][0] == "text" else None
        name = f"{page}, example {i}"
        printed, error = "", None
        if kind == "python" and body.startswith(">>>"):
            run_doctest(body, names, name)
        elif kind == "python":
            printed, error = run_python(body, names, name)
        elif kind == "sh":
            printed = run_shell(body, name)
        if shown is not None:
            right = doctest.OutputChecker().check_output(tidy(shown) + "\n", tidy(printed) + "\n", doctest.ELLIPSIS)
            assert right, f"{name}\n--- shown\n{shown}\n--- printed\n{printed}"
        elif error is not None:
            raise error
    if missing:
        pytest.skip(f"examples that need {', '.join(missing)} are left out, all others are right")


def test_the_catalogue_has_every_kind_of_error():
    """Each section of errors.md shows errors of the kind that it is about; `test_examples` compares the messages."""
    setup, *sections = re.split(r"^## (\w+)\n", (ROOT / "docs" / "errors.md").read_text("utf-8"), flags=re.M)
    kinds = {k for k, v in vars(errors).items() if inspect.isclass(v) and issubclass(v, LayoutError)}
    assert sorted(sections[::2]) == sorted(kinds - {"LayoutError"})
    for kind, section in zip(sections[::2], sections[1::2], strict=True):
        examples = [(module, code) for language, module, code in FENCE.findall(section) if language == "python"]
        assert examples, kind
        for module, code in examples:
            if module and importlib.util.find_spec(module) is None:
                continue
            names = {}
            for _, _, start in FENCE.findall(setup):
                exec(start, names)
            error = run_python(code, names, kind)[1]
            assert type(error).__name__ == kind, code


def test_the_reference_has_every_public_name():
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    described = re.findall(r"^\.\. (?:auto\w+|py:data):: (\w+)$", pages, re.M)
    assert sorted(described) == sorted(tiling.__all__)
