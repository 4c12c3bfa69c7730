"""Checking a certificate, however it is given: what is no certificate is bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from mipmech import untrusted
from mipmech.checker.verdict import FORMAT, InstanceNotFound, Verdict
from mipmech.design.certificate import Certificate, check_on
from mipmech.errors import InputError, shorten
from mipmech.files import faults
from mipmech.model.instance import Instance
from mipmech.tolerances import LARGEST_CERTIFICATE
from mipmech.workers.executor import Executor


def check(
    certificate: object,
    instance: Instance | str | Path | None = None,
    watch: Callable[[str], None] | None = None,
    seconds: float = math.inf,
    executor: Executor | None = None,
) -> Verdict:
    """Check a certificate by a program that shares only the instance reader with its maker.

    Parameters
    ----------
    certificate : Certificate, dict, str or Path
        The certificate, its content, or its file.
    instance : Instance, str or Path, optional
        By default the certificate's own: of a file, the one that is named in it, relative to it.
    watch : callable, optional
        Receives a line of progress now and then.
    seconds : float
        The check gives up after this time.
    executor : Executor, optional
        Its workers check the parts of the proof; the verdict is the same.

    Returns
    -------
    Verdict
        Rejected if anything is wrong with the content of the certificate.

    Raises
    ------
    InputError
        If a file cannot be read, or is something else than a certificate.
    """
    if isinstance(certificate, Certificate):
        instance = certificate.instance if instance is None else instance
        return check_on(executor, certificate.content(), instance, watch, seconds)
    if isinstance(certificate, dict):
        return check_on(executor, certificate, instance, watch, seconds)
    if not isinstance(certificate, (str, Path)):
        said = f"is of the type {type(certificate).__name__}; give a Certificate or its file"
        raise InputError(said, field="certificate")
    with faults("cannot be read", Path(certificate)):
        try:
            verdict = check_on(executor, certificate, instance, watch, seconds)
        except InstanceNotFound as error:
            raise InputError(str(error), file=certificate) from None
    if verdict.claim is None and not verdict.accepted:
        _refuse_another_kind(Path(certificate))
    return verdict


def _refuse_another_kind(file: Path) -> None:
    """Of a file that is rejected at first sight: say so if it was never meant to be one."""
    try:
        format_ = untrusted.json_object(file, LARGEST_CERTIFICATE).get("format")
    except (InputError, OSError):
        return
    if format_ != FORMAT:
        what = "is missing" if format_ is None else f"is {shorten(format_)}"
        said = f"{what}, so this is no certificate ({FORMAT}); mipmech certify --out makes one"
        raise InputError(said, file=file, field="format")
