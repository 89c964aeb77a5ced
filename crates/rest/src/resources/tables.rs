//! Tables as wholes: the list, whether one is there, its regions, its schema. Follows: `RootResource`, `ExistsResource`,
//! `RegionsResource`, `SchemaResource`.

use super::{Action, model_of};
use crate::gateway::{Gateway, table_name};
use crate::media::MODELS_OR_TEXT;
use crate::models::{TableInfo, TableList, TableRegion, TableSchema};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use client::{Admin, Error};
use hyper::StatusCode;
use model::TableName;

/// `/`
pub async fn list(gateway: &Gateway, request: &Request) -> Answer {
    let media = request.accepted(MODELS_OR_TEXT)?;
    let names = gateway.connection.admin().list_table_names(None, false).await.map_err(|error| Reply::of(&error))?;
    let list = TableList(names.iter().map(ToString::to_string).collect());
    Ok(Reply::model(media, &list).uncached())
}

/// `/{table}/exists`
pub async fn exists(gateway: &Gateway, table: &str) -> Answer {
    let name = table_name(table)?;
    match gateway.connection.admin().table_exists(&name).await {
        Ok(true) => Ok(Reply::ok().uncached()),
        Ok(false) => Err(Reply::not_found()),
        Err(_) => Err(Reply::unavailable()),
    }
}

/// `/{table}/regions`
pub async fn regions(gateway: &Gateway, request: &Request, table: &str) -> Answer {
    let media = request.accepted(MODELS_OR_TEXT)?;
    let name = table_name(table)?;
    let regions = match gateway.connection.table(&name).regions().await {
        Ok(regions) => regions,
        Err(Error::TableNotFound(_)) => return Err(Reply::not_found()),
        Err(_) => return Err(Reply::unavailable()),
    };
    let region = |location: client::RegionLocation| TableRegion {
        name: String::from_utf8_lossy(location.region.name()).into_owned(),
        id: i64::try_from(location.region.region_id).unwrap_or(i64::MAX),
        start_key: location.region.start_key.clone(),
        end_key: location.region.end_key.clone(),
        location: location.server.address(),
    };
    let info = TableInfo { name: name.to_string(), regions: regions.into_iter().map(region).collect() };
    Ok(Reply::model(media, &info).uncached())
}

/// `/{table}/schema`
pub async fn schema(gateway: &Gateway, request: &Request, table: &str, action: Action) -> Answer {
    let name = table_name(table)?;
    let admin = gateway.connection.admin();
    let outcome = match action {
        Action::Get => return describe(&admin, request, &name).await,
        Action::Delete => drop_table(&admin, &name).await.map(|()| Reply::ok()),
        Action::Put => replace(&admin, request, &name, &model_of(request)?).await,
        Action::Post => {
            let schema = model_of(request)?;
            if admin.table_exists(&name).await.map_err(|error| Reply::of(&error))? {
                return update(&admin, &name, &schema).await;
            }
            replace(&admin, request, &name, &schema).await
        }
    };
    outcome.map_err(|error| Reply::of(&error))
}

async fn describe(admin: &Admin, request: &Request, name: &TableName) -> Answer {
    let media = request.accepted(MODELS_OR_TEXT)?;
    let described = admin.describe(name).await.map_err(|error| Reply::of(&error))?;
    let table = described.ok_or_else(|| Reply::of(&Error::TableNotFound(name.clone())))?;
    Ok(Reply::model(media, &TableSchema::of(&table)).uncached())
}

async fn drop_table(admin: &Admin, name: &TableName) -> Result<(), Error> {
    match admin.disable_table(name).await {
        Err(error) if error.short_class() != Some("TableNotEnabledException") => return Err(error),
        _ => {}
    }
    admin.delete_table(name).await
}

/// Makes the table, or gives it this schema in place of its own.
async fn replace(admin: &Admin, request: &Request, name: &TableName, schema: &TableSchema) -> Result<Reply, Error> {
    let descriptor = schema.descriptor(name.clone());
    if admin.table_exists(name).await? {
        admin.disable_table(name).await?;
        admin.modify_table(&descriptor).await?;
        admin.enable_table(name).await?;
    } else if let Err(error) = admin.create_table(&descriptor, &[]).await {
        if error.short_class() != Some("TableExistsException") {
            return Err(error);
        }
        return Ok(Reply::text(StatusCode::NOT_MODIFIED, "Not modified"));
    }
    Ok(Reply::created(&request.url()))
}

/// Adds and changes families; the table is closed meanwhile, as HBase has it.
async fn update(admin: &Admin, name: &TableName, schema: &TableSchema) -> Answer {
    let described = admin.describe(name).await.map_err(|error| Reply::of(&error))?;
    let table = described.ok_or_else(|| Reply::of(&Error::TableNotFound(name.clone())))?;
    admin.disable_table(name).await.map_err(|error| Reply::of(&error))?;
    let mut changed = Ok(());
    for family in schema.families.iter().map(|family| family.descriptor()) {
        changed = if table.families.contains_key(&family.name) {
            admin.modify_family(name, &family).await
        } else {
            admin.add_family(name, &family).await
        };
        if changed.is_err() {
            break;
        }
    }
    admin.enable_table(name).await.map_err(|error| Reply::of(&error))?;
    changed.map(|()| Reply::ok()).map_err(|_| Reply::unavailable())
}
