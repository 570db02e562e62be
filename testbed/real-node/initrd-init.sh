#!/bin/busybox sh
# The first process of the first root file system: mounts the disk, and hands over to the init on it.
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
# ext4 is in the kernel itself.
for module in virtio_pci virtio_blk; do modprobe "$module"; done
while [ ! -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 -o rw,noatime /dev/vda /disk
for folder in dev proc sys; do mount -o move "/$folder" "/disk/$folder"; done
exec switch_root /disk /sbin/init
