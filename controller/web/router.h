#pragma once

// Finds what serves a request by its method and path. A pattern's parts in braces take any one part of a
// path: /jobs/{namespace}/{name}. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/web/http_message.h"

namespace paceline::web {

class Router {
 public:
  // Routes are numbered from 0 in the order in which they are added. GET serves HEAD, too.
  std::size_t add(std::string method, std::string_view pattern);

  struct Match {
    std::optional<std::size_t> route;
    HttpRequest::Fields parameters;    // by their names in the pattern
    std::vector<std::string> allowed;  // methods of the path, where it has others than this one
  };
  Match match(std::string_view method, std::string_view path) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> parts;
  };
  std::vector<Route> routes_;
};

}  // namespace paceline::web
