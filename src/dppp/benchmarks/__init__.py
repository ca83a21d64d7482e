"""Speed, measured as ratios within one run; no figure here is asserted by a test."""
