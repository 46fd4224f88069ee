"""Ours in no time, for tests of the harness."""

TINY = "network:max_epochs=1,d_model=8,branch_width=2,n_inception_layers=1,max_tokens=8"
