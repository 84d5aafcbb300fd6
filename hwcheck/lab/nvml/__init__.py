"""The lab's own libnvidia-ml: state in files, faults in files, compiled by cc when a lab is set up."""
