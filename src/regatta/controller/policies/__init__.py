"""One module per policy; `reconcile` is their table of contents."""
