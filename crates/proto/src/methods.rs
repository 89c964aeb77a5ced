//! Every method of every service that HBase has, with the names of its messages.
//!
//! Direct services ([`Service::Client`], [`Service::Master`], ...) are named in a `ConnectionHeader`; the others are
//! coprocessor endpoints, called through `ClientService.ExecService` or `MasterService.ExecMasterService`.

/// One method of a service.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct MethodInfo {
    /// The service it belongs to.
    pub service: Service,
    /// The method itself, to match on.
    pub method: Method,
    /// Its name in the `RequestHeader`; case matters.
    pub name: &'static str,
    /// Name of the request message, without the package.
    pub request: &'static str,
    /// Name of the reply message, without the package.
    pub response: &'static str,
}

include!("gen/methods.rs");

impl Service {
    /// The service of that name (`ClientService`), with or without the package before it.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("hbase.pb.").unwrap_or(name);
        Self::ALL.binary_search_by(|s| s.name().cmp(name)).ok().map(|i| Self::ALL[i])
    }

    /// The method of that name; `None` means that HBase has none such.
    pub fn method(self, name: &str) -> Option<&'static MethodInfo> {
        let methods = self.methods();
        methods.binary_search_by(|m| m.name.cmp(name)).ok().map(|i| &methods[i])
    }
}

impl Method {
    /// Its row in the table.
    pub fn info(self) -> &'static MethodInfo {
        &METHODS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_found_by_its_names() {
        for info in METHODS {
            assert_eq!(Service::from_name(info.service.name()), Some(info.service));
            assert_eq!(info.service.method(info.name), Some(info));
            assert_eq!(info.method.info(), info);
        }
        assert_eq!(Service::Master.method("GetProcedureResult"), None, "the real name begins in lower case");
        assert_eq!(Service::Master.method("getProcedureResult").unwrap().method, Method::MasterGetProcedureResult);
        assert_eq!(Service::from_name("hbase.pb.MultiRowMutationService"), Some(Service::MultiRowMutation));
        assert_eq!(Service::from_name("NoService"), None);
    }
}
