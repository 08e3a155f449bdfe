"""Agents that are a model with tools: the model is asked, its calls are carried out, and it is asked again."""
