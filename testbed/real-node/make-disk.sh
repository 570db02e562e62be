#!/bin/sh
# Makes `kernel`, `initrd`, `root.ext4` and `busybox.tar` in the folder `$1`, from Debian's packages and from what lies there:
# `packages.txt`, `initrd-init.sh`, and `files`, the machine's own configuration. It installs nothing and runs no script of a
# package. It needs no root, but the files should look like root's: `unshare --map-root-user`.
set -e
cd "$1"

# With all that they depend on, as for an empty machine.
fetch_packages() {
  : > dpkg-status
  mkdir -p packages/partial
  # shellcheck disable=SC2046 # one word a line
  apt-get --quiet --yes --no-install-recommends --download-only \
    -o Dir::State::status="$PWD/dpkg-status" -o Dir::Cache::archives="$PWD/packages" \
    -o APT::Sandbox::User=root -o Debug::NoLocking=true install $(cat packages.txt)
}

unpack_packages() {
  mkdir -p root/usr/bin root/usr/sbin root/usr/lib root/usr/lib64
  for folder in bin sbin lib lib64; do ln -s "usr/$folder" "root/$folder"; done
  for package in packages/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar --extract --keep-directory-symlink --no-same-owner --directory root \
      --exclude './usr/share/doc/*' --exclude './usr/share/man/*' --exclude './usr/share/locale/*'
  done
  rm -r packages dpkg-status
}

# In place of the packages' scripts.
configure_root() {
  ln -sf dash root/bin/sh
  mkdir -p root/seed root/dev root/proc root/sys root/run root/root root/var/lib/volumes/first
  mkdir -p -m 1777 root/tmp
  sed 's/:\*:/:x:/' root/usr/share/base-passwd/passwd.master > root/etc/passwd
  sed 's/:\*:/:x:/' root/usr/share/base-passwd/group.master > root/etc/group
  echo 'messagebus:x:100:100::/nonexistent:/usr/sbin/nologin' >> root/etc/passwd
  printf 'messagebus:x:100:\nsystemd-journal:x:101:\nkvm:x:102:\ninput:x:103:\nrender:x:104:\nsgx:x:105:\n' >> root/etc/group
  : > root/etc/machine-id
  : > root/etc/resolv.conf
  echo worker-0 > root/etc/hostname
  echo '127.0.0.1 localhost worker-0' > root/etc/hosts
  cp -r files/. root/
  units=root/etc/systemd/system
  chmod 755 root/usr/local/sbin/*
  mkdir -p $units/multi-user.target.wants $units/sockets.target.wants
  for unit in node-network containerd import-images kubelet; do
    place=/lib/systemd/system
    [ -e $units/$unit.service ] && place=/etc/systemd/system
    ln -s $place/$unit.service $units/multi-user.target.wants/
  done
  ln -s /etc/systemd/system/api-server.socket $units/sockets.target.wants/
  ln -sf /lib/systemd/system/multi-user.target $units/default.target
  # Nobody logs in; what else takes time under emulation is not needed.
  for unit in getty.target systemd-firstboot.service systemd-hwdb-update.service systemd-pstore.service e2scrub_reap.service \
    fstrim.timer e2scrub_all.timer; do
    ln -sf /dev/null $units/$unit
  done
}

# The guest's own depmod makes the index of the kernel's modules.
make_kernel() {
  mv root/boot/vmlinuz-* kernel
  rm -r root/boot
  version=$(ls root/lib/modules)
  libraries=root/lib/x86_64-linux-gnu
  "$libraries/ld-linux-x86-64.so.2" --argv0 depmod --library-path "$libraries" root/bin/kmod -b root "$version"
}

# The first root file system: busybox, and the modules for the disk.
make_initrd() {
  modules=lib/modules/$version
  mkdir -p early/bin early/dev early/proc early/sys early/disk "early/$modules"
  cp root/bin/busybox early/bin/
  cp initrd-init.sh early/init
  chmod 755 early/init
  for module in virtio virtio_ring virtio_pci virtio_pci_legacy_dev virtio_pci_modern_dev virtio_blk; do
    (cd root && find "$modules/" -name "$module.ko" -exec cp --parents {} ../early/ \;)
  done
  for index in dep alias symbols softdep; do cp "root/$modules/modules.$index" "early/$modules/"; done
  (cd early && find . | ./bin/busybox cpio -o -H newc) | gzip > initrd
}

# As `docker save` writes it: the pause container, and the tests' workload.
make_busybox_image() {
  mkdir -p layer/bin layer/tmp layer/data image
  cp root/bin/busybox layer/bin/
  for applet in sh cat sleep; do ln -s busybox layer/bin/$applet; done
  tar --create --owner=0 --group=0 --directory layer --file image/layer.tar .
  layer=$(sha256sum image/layer.tar | cut -d ' ' -f 1)
  # The first process of a container ignores SIGTERM unless it handles it; a shutdown would wait for it.
  cat > image/config.json << CONFIG
{"architecture": "amd64", "os": "linux", "created": "2026-01-01T00:00:00Z",
 "config": {"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["trap 'exit 0' TERM; sleep 1000000000 & wait"], "Env": ["PATH=/bin"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]}}
CONFIG
  echo '[{"Config": "config.json", "RepoTags": ["real-node-busybox:1"], "Layers": ["layer.tar"]}]' > image/manifest.json
  tar --create --directory image --file busybox.tar .
}

# Without lists, or with old ones, nothing is found.
fetch_packages || { apt-get --quiet update && fetch_packages; }
unpack_packages
configure_root
make_kernel
make_initrd
make_busybox_image
# Holes take no room.
PATH="$PATH:/usr/sbin:/sbin" mke2fs -q -t ext4 -L root -d root root.ext4 4G
rm -r root early layer image files packages.txt initrd-init.sh
