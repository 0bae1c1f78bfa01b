"""Small quadratic programs: over a simplex, and by an interior point method."""
