"""The mathematics as Pyomo models, arrays in, model out; imports nothing from mipmech.

This release has the symbol table only (`formulations/README.md`).
"""
