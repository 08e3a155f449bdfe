"""The browser of `tests/browser`, for the rest of its tests."""

from tests.browser.conftest import browser as browser
