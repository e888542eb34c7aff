#include "runtime/cuda/module.h"

#include <array>

#include "base/text.h"

namespace paceline::cuda {

absl::StatusOr<Module> Module::load(std::shared_ptr<const Context> context,
                                    std::span<const std::byte> image) {
  PL_RETURN_IF_ERROR(context->enter());
  CUmodule handle = nullptr;
  PL_RETURN_IF_ERROR(with_context(
      context->check(context->calls().cuModuleLoadData(&handle, image.data()), "cuModuleLoadData"),
      str_cat("kernels for ", context->device().name)));
  return Module(std::move(context), handle);
}

Module::~Module() {
  if (handle_ != nullptr && context_->enter().ok()) context_->calls().cuModuleUnload(handle_);
}

absl::StatusOr<CUfunction> Module::find(const char* name, std::size_t parameter_bytes,
                                        std::uint32_t shared_bytes) const {
  PL_RETURN_IF_ERROR(context_->enter());
  const Driver::Calls& call = context_->calls();
  CUfunction function = nullptr;
  PL_RETURN_IF_ERROR(with_context(
      context_->check(call.cuModuleGetFunction(&function, handle_, name), "cuModuleGetFunction"), name));
  std::size_t offset = 0, bytes = 0;
  PL_RETURN_IF_ERROR(with_context(
      context_->check(call.cuFuncGetParamInfo(function, 0, &offset, &bytes), "cuFuncGetParamInfo"), name));
  if (bytes != parameter_bytes)
    return absl::InternalError(str_cat("kernel ", name, " takes ", bytes, " bytes, and is given ",
                                       parameter_bytes, ": its image is of another build"));
  // What every GPU gives without being asked.
  constexpr std::uint32_t kPlainBytes = 48 * 1024;
  if (shared_bytes <= kPlainBytes) return function;
  PL_RETURN_IF_ERROR(with_context(
      context_->check(call.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                              static_cast<int>(shared_bytes)),
                      "cuFuncSetAttribute"),
      str_cat(name, ", whose blocks have ", shared_bytes, " bytes of shared memory")));
  return function;
}

namespace module_internal {

absl::Status launch(CUfunction function, const char* name, Stream& stream, const LaunchShape& shape,
                    std::uint32_t shared_bytes, const void* params) {
  // The driver takes what it copies as not const.
  std::array<void*, 1> pointers{const_cast<void*>(params)};
  const CUresult result =
      stream.context().calls().cuLaunchKernel(function, shape.columns, shape.rows, 1, shape.threads, 1, 1,
                                              shared_bytes, stream.handle(), pointers.data(), nullptr);
  if (result == CUDA_SUCCESS) [[likely]]
    return absl::OkStatus();
  return with_context(stream.context().check(result, "cuLaunchKernel"), name);
}

}  // namespace module_internal

}  // namespace paceline::cuda
