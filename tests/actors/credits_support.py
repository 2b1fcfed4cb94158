"""Prices that tests of credits count with."""

TEN_A_CALL = {"*": {"request": 10}}
"""Credits, whatever a call's size."""

A_CREDIT_A_TOKEN = {"ScriptedModel": {"input": 1_000_000, "output": 1_000_000}}
