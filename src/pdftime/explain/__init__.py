"""Why: the evidence behind a decision, numbers first."""
