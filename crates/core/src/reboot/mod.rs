//! The planned reboot of one node.
