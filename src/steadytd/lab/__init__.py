"""The lab: a page that runs our learners in the browser, with the engine's own bits."""
