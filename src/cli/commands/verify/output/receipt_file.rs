//! The file of `--receipt`: a receipt a line, under its name once all are there.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::api::verify::VerifyResponse;
use crate::cli::process::exit::{Failure, Kind};
use crate::private;
use crate::verify::receipt::{self, Fingerprint};

/// Receipts on their way into a file. Without [`ReceiptFile::finish`] nothing is left of them.
#[derive(Debug)]
pub(crate) struct ReceiptFile {
    path: PathBuf,
    draft: PathBuf,
    file: File,
}

impl ReceiptFile {
    /// A file that is not there yet. Found out before anything is paid for: whether it can be written.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let Some(name) = path.file_name().filter(|_| path != Path::new("-")) else {
            return Err(Failure::usage(format!("--receipt needs a file name, not `{}`", path.display())));
        };
        if path.symlink_metadata().is_ok() {
            return Err(taken(path));
        }
        let name = format!(".{}.{}.new", name.to_string_lossy(), uuid::Uuid::now_v7().simple());
        let draft = path.with_file_name(name);
        let file = private::create_new(&draft).map_err(|cause| unwritable(path, cause))?;
        Ok(Self { path: path.to_owned(), draft, file })
    }

    /// Adds the receipt of a result.
    pub(crate) fn add(&mut self, result: &VerifyResponse) -> Result<(), Failure> {
        let Some(receipt) = &result.receipt else {
            return Err(Failure::new(Kind::Server, "the server sent no receipt")
                .hint("the server may be too old for receipts"));
        };
        let fault = match receipt::open(receipt) {
            Err(cause) => Some(cause.to_string()),
            Ok(_) if receipt.contains('\n') => Some("it has several lines".to_owned()),
            Ok(opened)
                if opened.payload.request_id != result.request_id
                    || opened.payload.statement != Fingerprint::of(&result.original_fact) =>
            {
                Some("it is about another verification".to_owned())
            }
            Ok(_) => None,
        };
        if let Some(fault) = fault {
            let message = format!("the server sent an invalid receipt: {fault}");
            return Err(Failure::new(Kind::Server, message));
        }
        let written = self.file.write_all(format!("{receipt}\n").as_bytes());
        written.map_err(|cause| unwritable(&self.path, cause))
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let named = self.file.sync_all().and_then(|()| private::claim_name(&self.draft, &self.path));
        named.map_err(|cause| match cause.kind() {
            ErrorKind::AlreadyExists => taken(&self.path),
            _ => unwritable(&self.path, cause),
        })
    }
}

impl Drop for ReceiptFile {
    fn drop(&mut self) {
        // Best effort: a leftover is of no use to anyone.
        let _ = fs::remove_file(&self.draft);
    }
}

fn taken(path: &Path) -> Failure {
    Failure::new(Kind::Conflict, format!("--receipt: {} already exists", path.display()))
        .hint("receipts are never overwritten; choose another name, or remove that file")
}

fn unwritable(path: &Path, cause: io::Error) -> Failure {
    Failure::new(Kind::Other, format!("--receipt: cannot write {}: {cause}", path.display())).caused_by(cause)
}
