"""The lab's own libcuda: time is virtual and follows from the node's state; compiled by cc when a lab is set up."""
