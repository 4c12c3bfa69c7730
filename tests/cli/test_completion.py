"""Shell completion, as bash asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def bash(script, **environment):
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", script],
        cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_bash_completes_commands_options_and_names(tmp_path):
    program = tmp_path / "mipmech"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mipmech "$@"\n')
    program.chmod(0o755)
    installed = bash(f"{program} --install-completion; true", HOME=str(tmp_path))
    assert "bash completion installed in" in installed
    source = f"source {tmp_path}/.bash_completions/mipmech.sh"
    for words, completed in {
        "mipmech cert": ["certify"],
        "mipmech certify --fold-": ["--fold-seed"],
        "mipmech certify a.json --engine ": ["auto", "cells", "milp"],
        "mipmech make ga": ["gaussian-mixture"],
        "mipmech solve a.json --oracle cells": ["cells", "cells-soft"],
        "mipmech bench me": ["merge"],
        "mipmech certify instances/": [],  # the shell's own completion of files
    }.items():
        listed = (*words.split(), *([""] if words.endswith(" ") else []))
        asked = " ".join(f"'{word}'" for word in listed)
        script = (
            f"{source}; COMP_WORDS=({asked}); COMP_CWORD={len(listed) - 1};"
            f' _mipmech_completion {program}; echo "${{COMPREPLY[@]}}"; complete -p mipmech'
        )
        answer, how, *_ = bash(script).splitlines()
        assert answer.split() == completed
        assert how == "complete -o default -F _mipmech_completion mipmech"
