#pragma once

// Where an API server is, and how it proves that it is the one.

#include <string>

namespace paceline::kube {

struct Endpoint {
  std::string server;           // https://host:port[/path]
  std::string ca_pem;           // empty: the system's certificate authorities
  std::string tls_server_name;  // the name in the server's certificate; empty: the host of `server`
  std::string proxy_url;        // empty: HTTPS_PROXY and NO_PROXY of the environment
  bool insecure_skip_tls_verify = false;
};

}  // namespace paceline::kube
