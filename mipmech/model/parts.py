"""Some of an instance's agents as an instance of their own."""

from __future__ import annotations

from mipmech.model.instance import Instance

part = Instance.part
