//! Namespaces. Follows: `NamespacesResource`, `NamespacesInstanceResource`.

use super::{Action, model_of};
use crate::gateway::Gateway;
use crate::media::{MODELS_OR_TEXT, Media};
use crate::models::{NamespaceProperties, Namespaces, TableList};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use client::Error;
use hyper::StatusCode;

fn failed(why: &str) -> Reply {
    Reply::text(StatusCode::INTERNAL_SERVER_ERROR, why)
}

/// `/namespaces`
pub async fn list(gateway: &Gateway, request: &Request) -> Answer {
    let media = request.accepted(MODELS_OR_TEXT)?;
    let namespaces = gateway.connection.admin().namespaces().await;
    let namespaces = namespaces.map_err(|_| failed("Cannot retrieve list of namespaces."))?;
    Ok(Reply::model(media, &Namespaces(namespaces.into_keys().collect())))
}

/// `/namespaces/{ns}/tables`
pub async fn tables(gateway: &Gateway, request: &Request, name: &str) -> Answer {
    let media = request.accepted(MODELS_OR_TEXT)?;
    let tables = gateway.connection.admin().list_table_names_of_namespace(name).await;
    let tables = tables.map_err(|_| failed(&format!("Cannot retrieve table list for '{name}'.")))?;
    let list = TableList(tables.iter().map(|table| table.qualifier().to_owned()).collect());
    Ok(Reply::model(media, &list))
}

/// `/namespaces/{ns}`
pub async fn one(gateway: &Gateway, request: &Request, name: &str, action: Action) -> Answer {
    let admin = gateway.connection.admin();
    let known = |namespaces: std::collections::BTreeMap<String, _>| namespaces.contains_key(name);
    let refused = |error: Error| Reply::of(&error);
    match action {
        Action::Get => {
            let media = request.accepted(MODELS_OR_TEXT)?;
            let properties = admin.describe_namespace(name).await;
            let properties = properties.map_err(|_| failed(&format!("Cannot retrieve info for '{name}'.")))?;
            Ok(Reply::model(media, &NamespaceProperties { name: name.to_owned(), properties }))
        }
        Action::Delete => {
            if !admin.namespaces().await.map(known).map_err(refused)? {
                let text = format!("Namespace '{name}' does not exists.  Cannot drop namespace.");
                return Err(words(StatusCode::NOT_FOUND, text));
            }
            admin.delete_namespace(name).await.map(|()| Reply::ok()).map_err(refused)
        }
        Action::Put | Action::Post => {
            // No body is no properties.
            let body = if request.body.is_empty() { NamespaceProperties::default() } else { model_of(request)? };
            let exists = admin.namespaces().await.map(known).map_err(refused)?;
            match (action, exists) {
                (Action::Post, true) => Err(words(
                    StatusCode::FORBIDDEN,
                    format!("Namespace '{name}' already exists.  Use REST PUT to alter the existing namespace."),
                )),
                (Action::Put, false) => Err(words(
                    StatusCode::FORBIDDEN,
                    format!("Namespace '{name}' does not exist. Use REST POST to create the namespace."),
                )),
                (Action::Put, true) => {
                    admin.modify_namespace(name, &body.properties).await.map_err(refused)?;
                    Ok(Reply::bytes(Media::Text, request.url()))
                }
                _ => {
                    admin.create_namespace(name, &body.properties).await.map_err(refused)?;
                    Ok(Reply::created(&request.url()))
                }
            }
        }
    }
}

/// HBase ends these without a line break.
fn words(status: StatusCode, text: String) -> Reply {
    Reply { status, ..Reply::bytes(Media::Text, text) }
}
