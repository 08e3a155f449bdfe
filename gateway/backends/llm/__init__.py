"""Agents that are a model with tools, behind a model service such as `openai` or `anthropic`."""
