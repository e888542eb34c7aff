#include "runtime/cuda/shared_object.h"

#include <dlfcn.h>
#include <link.h>

#include <utility>

#include "base/text.h"

namespace paceline::cuda {

namespace {

std::string path_of(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name[0] == '\0') return name;
  return map->l_name;
}

// The loader has one message for all: a missing file is told by its words alone.
bool is_missing(std::string_view error, std::string_view name) {
  return error.starts_with(str_cat(name, ": cannot open shared object file: No such file"));
}

}  // namespace

absl::StatusOr<SharedObject> SharedObject::open(std::span<const std::string> names) {
  std::string errors;
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr)
      return SharedObject(handle, path_of(handle, name));
    const char* told = ::dlerror();
    const std::string error = told == nullptr ? str_cat(name, ": it can't be opened") : std::string(told);
    if (!is_missing(error, name)) return absl::FailedPreconditionError(error);
    errors += str_cat(errors.empty() ? "" : "; ", error);
  }
  return absl::NotFoundError(errors);
}

absl::StatusOr<void*> SharedObject::find(const char* symbol) const {
  ::dlerror();
  void* const found = ::dlsym(handle_, symbol);
  if (found == nullptr) return absl::FailedPreconditionError(str_cat(path_, " has no ", symbol));
  return found;
}

}  // namespace paceline::cuda
