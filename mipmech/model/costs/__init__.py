"""What a move costs: how far agents go to pass, and what their moves do. One file per norm."""
