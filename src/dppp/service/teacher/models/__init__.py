"""An organisation's own models: loaded from files, or called over HTTP."""
