"""The world: instances, what the planner sees, mechanisms, and the exact truth about them."""
