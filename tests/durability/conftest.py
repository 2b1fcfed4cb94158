"""The databases of the tests of stores, for these as well."""

from tests.stores.conftest import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]
