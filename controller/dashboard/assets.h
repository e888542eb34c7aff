#pragma once

// The files of the page, as a server hands them out: compressed, with what browsers may keep. Pure.

#include <span>
#include <string>
#include <string_view>

#include "controller/web/http_message.h"

namespace paceline::dashboard {

struct Asset {
  std::string_view path;  // "/assets/index-4f3a.js"; the page itself is "/"
  std::string_view gzip;  // its bytes, compressed
};

// The files that this build has (cmake/PacelineDashboard.cmake); empty: it was built without the page.
std::span<const Asset> embedded_assets();

// GET or HEAD of a path that is not the API's. Paths without a file get the page, which knows its own views;
// but not those under /assets/, which are files or nothing. Without a page: a few words that say how to get
// it.
web::HttpAnswer asset_answer(std::span<const Asset> assets, const web::HttpRequest& request);

}  // namespace paceline::dashboard
