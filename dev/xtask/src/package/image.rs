//! An OCI image, made without a daemon: a layer with Debian's C library, a layer with the package's files, a configuration, a manifest.
//! Follows: the OCI image format specification 1.1 (image-layout, manifest, config).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::machine::Machine;
use crate::run;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The packages of the first layer.
const LIBRARIES: [&str; 1] = ["libc6"];
/// Who the server runs as in a container: no name of the host's.
const USER: u32 = 65_532;
/// Where the data is, without the slash in front.
const DATA: &str = "var/lib/basalt";
/// What the server listens on: the coordination endpoint, the master, its pages, the region server, its pages.
const PORTS: [u16; 5] = [2181, 16000, 16010, 16020, 16030];

/// Writes the image's layout to `dir` and as one file beside it; `root` has the package's files. The C library is that of the Debian that this runs
/// on, of the edition for `machine`.
pub fn write(root: &Path, version: &str, machine: Machine, dir: &Path) -> anyhow::Result<PathBuf> {
    let blobs = dir.join("blobs/sha256");
    std::fs::create_dir_all(&blobs)?;
    let layers = [layer(&libraries(machine, dir)?, &[], &blobs)?, layer(&application(root, dir)?, &[DATA], &blobs)?];
    let config = blob(&blobs, &serde_json::to_vec_pretty(&config(version, machine, &layers))?)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": { "mediaType": CONFIG, "digest": config.digest, "size": config.size_bytes },
        "layers": layers.iter().map(|layer| json!({
            "mediaType": LAYER, "digest": layer.blob.digest, "size": layer.blob.size_bytes,
        })).collect::<Vec<_>>(),
    });
    let manifest = blob(&blobs, &serde_json::to_vec_pretty(&manifest)?)?;
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": MANIFEST,
            "digest": manifest.digest,
            "size": manifest.size_bytes,
            "platform": { "architecture": machine.debian(), "os": "linux" },
            "annotations": { "org.opencontainers.image.ref.name": version },
        }],
    });
    std::fs::write(dir.join("index.json"), serde_json::to_vec_pretty(&index)?)?;
    std::fs::write(dir.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    let name = format!("basalt-{version}-{}.oci.tar", machine.name());
    let archive = dir.parent().context("a directory below another")?.join(name);
    let mut tar = super::reproducible_tar();
    run::must("tar", tar.arg("-cf").arg(&archive).arg("-C").arg(dir).args(["oci-layout", "index.json", "blobs"]))?;
    Ok(archive)
}

fn config(version: &str, machine: Machine, layers: &[Layer]) -> Value {
    let ports: serde_json::Map<String, Value> = PORTS.iter().map(|port| (format!("{port}/tcp"), json!({}))).collect();
    json!({
        "architecture": machine.debian(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin:/bin", "HBASE_CONF_DIR=/etc/basalt"],
            // A container has an address of its own: whoever may reach it is settled by what it publishes.
            "Entrypoint": ["/usr/bin/basalt"],
            "Cmd": ["-D", "basalt.bind=0.0.0.0"],
            "ExposedPorts": ports,
            "Volumes": { (format!("/{DATA}")): {} },
            "WorkingDir": format!("/{DATA}"),
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "basalt",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": layers.iter().map(|layer| &layer.diff_id).collect::<Vec<_>>() },
        "history": layers.iter().map(|_| json!({ "created_by": "cargo xtask package" })).collect::<Vec<_>>(),
    })
}

/// A file of the layout.
struct Blob {
    digest: String,
    size_bytes: usize,
}

/// A layer, and the digest of its tarball before compression.
struct Layer {
    blob: Blob,
    diff_id: String,
}

fn blob(blobs: &Path, bytes: &[u8]) -> anyhow::Result<Blob> {
    let scratch = blobs.join("new");
    std::fs::write(&scratch, bytes)?;
    let digest = sha256(&scratch)?;
    std::fs::rename(scratch, blobs.join(&digest))?;
    Ok(Blob { digest: format!("sha256:{digest}"), size_bytes: bytes.len() })
}

/// Packs a directory and removes it; of its entries, `owned` belong to the server's user and the others to root.
fn layer(root: &Path, owned: &[&str], blobs: &Path) -> anyhow::Result<Layer> {
    let plain = root.with_extension("tar");
    let mut tar = super::reproducible_tar();
    tar.args(["--owner=0", "--group=0"]).args(owned.iter().map(|entry| format!("--exclude=./{entry}")));
    run::must("tar", tar.arg("-cf").arg(&plain).arg("-C").arg(root).arg("."))?;
    if !owned.is_empty() {
        let mut tar = super::reproducible_tar();
        tar.args([format!("--owner={USER}"), format!("--group={USER}")]);
        tar.arg("-rf").arg(&plain).arg("-C").arg(root).args(owned.iter().map(|entry| format!("./{entry}")));
        run::must("tar", &mut tar)?;
    }
    let diff_id = format!("sha256:{}", sha256(&plain)?);
    run::must("gzip", Command::new("gzip").args(["-9n", "--force"]).arg(&plain))?;
    let packed = root.with_extension("tar.gz");
    let blob = blob(blobs, &std::fs::read(&packed)?)?;
    std::fs::remove_file(packed)?;
    std::fs::remove_dir_all(root)?;
    Ok(Layer { blob, diff_id })
}

fn sha256(file: &Path) -> anyhow::Result<String> {
    let said = run::stdout("sha256sum", Command::new("sha256sum").arg("--").arg(file))?;
    Ok(said.split_whitespace().next().context("sha256sum says nothing")?.to_owned())
}

/// Debian's C library as its package lays it down, with the copyright and without what only people read; the files that name the user.
fn libraries(machine: Machine, dir: &Path) -> anyhow::Result<PathBuf> {
    let (debs, root) = (dir.join("debs"), dir.join("libraries"));
    std::fs::create_dir_all(&debs)?;
    for place in ["etc", "tmp"] {
        std::fs::create_dir_all(root.join(place))?;
    }
    std::fs::set_permissions(root.join("tmp"), std::fs::Permissions::from_mode(0o1777))?;
    // Debian's own layout: /lib is a link, and the package's files go where it leads.
    for link in machine.library_dirs() {
        std::fs::create_dir_all(root.join("usr").join(link))?;
        std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link))?;
    }
    download(machine, &debs, &dir.join("apt"))?;
    for deb in std::fs::read_dir(&debs)? {
        let (deb, files) = (deb?.path(), dir.join("files.tar"));
        let tar = std::fs::File::create(&files)?;
        run::must("dpkg-deb", Command::new("dpkg-deb").arg("--fsys-tarfile").arg(deb).stdout(tar))?;
        let mut unpack = Command::new("tar");
        unpack.args(["-x", "--keep-directory-symlink", "-f"]).arg(&files).arg("-C").arg(&root);
        run::must("tar", &mut unpack)?;
        std::fs::remove_file(files)?;
    }
    std::fs::remove_dir_all(debs)?;
    let conversions = format!("usr/lib/{}-linux-gnu/gconv", machine.name());
    for left_out in ["usr/share/locale", "usr/share/lintian", &conversions] {
        let place = root.join(left_out);
        if place.exists() {
            std::fs::remove_dir_all(place)?;
        }
    }
    let user = format!("basalt:x:{USER}:{USER}:basalt:/var/lib/basalt:/nologin");
    std::fs::write(root.join("etc/passwd"), format!("root:x:0:0:root:/:/nologin\n{user}\n"))?;
    std::fs::write(root.join("etc/group"), format!("root:x:0:\nbasalt:x:{USER}:\n"))?;
    std::fs::write(root.join("etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n")?;
    Ok(root)
}

/// Fetches [`LIBRARIES`] to `debs`. For another machine, Debian's lists of packages are kept in `state` meanwhile: those of this machine's own
/// `apt-get` do not have them.
fn download(machine: Machine, debs: &Path, state: &Path) -> anyhow::Result<()> {
    let mut options = vec!["--quiet=2".to_owned(), "--option=APT::Sandbox::User=root".to_owned()];
    let is_elsewhere = machine != Machine::here()?;
    if is_elsewhere {
        for kept in ["lists/partial", "archives/partial"] {
            std::fs::create_dir_all(state.join(kept))?;
        }
        options.extend([
            format!("--option=APT::Architecture={}", machine.debian()),
            format!("--option=APT::Architectures::={}", machine.debian()),
            format!("--option=Dir::State::Lists={}", state.join("lists").display()),
            format!("--option=Dir::Cache={}", state.display()),
        ]);
        run::must("apt-get update (network needed)", Command::new("apt-get").args(&options).arg("update"))?;
    }
    let mut download = Command::new("apt-get");
    download.args(&options).arg("download").args(LIBRARIES).current_dir(debs);
    run::must("apt-get download (network needed)", &mut download)?;
    if is_elsewhere {
        std::fs::remove_dir_all(state)?;
    }
    Ok(())
}

/// What the package installs and a container needs: no unit, no completions.
fn application(staged: &Path, dir: &Path) -> anyhow::Result<PathBuf> {
    let root = dir.join("application");
    for file in ["usr/bin/basalt", "etc/basalt/hbase-site.xml", "usr/share/doc/basalt/copyright"] {
        let to = root.join(file);
        std::fs::create_dir_all(to.parent().context("a file in a directory")?)?;
        std::fs::copy(staged.join(file), &to).with_context(|| format!("{file} is not in the package"))?;
    }
    std::fs::create_dir_all(root.join(DATA))?;
    Ok(root)
}

/// Lays the layers of a layout down below `place`, each checked against its digests, and returns the image's configuration.
pub fn unpack(layout: &Path, place: &Path) -> anyhow::Result<Value> {
    let index: Value = serde_json::from_slice(&std::fs::read(layout.join("index.json"))?)?;
    let manifest: Value = serde_json::from_slice(&verified(layout, &index["manifests"][0])?)?;
    let config: Value = serde_json::from_slice(&verified(layout, &manifest["config"])?)?;
    std::fs::create_dir_all(place)?;
    let layers = manifest["layers"].as_array().context("no layers")?;
    let diff_ids = config["rootfs"]["diff_ids"].as_array().context("no diff_ids")?;
    if layers.len() != diff_ids.len() {
        bail!("{} layers, {} diff_ids", layers.len(), diff_ids.len());
    }
    for (layer, diff_id) in layers.iter().zip(diff_ids) {
        let packed = place.with_extension("layer.gz");
        std::fs::write(&packed, verified(layout, layer)?)?;
        run::must("gzip", Command::new("gzip").args(["--decompress", "--force"]).arg(&packed))?;
        let plain = packed.with_extension("");
        if *diff_id != format!("sha256:{}", sha256(&plain)?) {
            bail!("a layer is not the one whose digest is {diff_id}");
        }
        let mut tar = Command::new("tar");
        tar.args(["-x", "--keep-directory-symlink", "--same-owner", "-f"]).arg(&plain).arg("-C").arg(place);
        run::must("tar", &mut tar)?;
        std::fs::remove_file(plain)?;
    }
    Ok(config)
}

/// The bytes that a descriptor names, if they have its size and digest.
fn verified(layout: &Path, descriptor: &Value) -> anyhow::Result<Vec<u8>> {
    let digest = descriptor["digest"].as_str().context("a descriptor without a digest")?;
    let hex = digest.strip_prefix("sha256:").with_context(|| format!("{digest}: not sha256"))?;
    let file = layout.join("blobs/sha256").join(hex);
    let bytes = std::fs::read(&file).with_context(|| format!("no blob {digest}"))?;
    if sha256(&file)? != hex || descriptor["size"] != bytes.len() {
        bail!("{}: {} bytes, not those of its descriptor {descriptor}", file.display(), bytes.len());
    }
    Ok(bytes)
}
