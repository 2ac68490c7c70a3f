//! (memory and file disks)
