"""How fast pdftime is: ratios measured in one run, interleaved, medians with quartiles."""
