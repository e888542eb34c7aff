# `cmake --install build/release` and `cmake --build build/release --target package` (a .deb).
# The command goes to bin/, its companions to libexec/paceline/, where it looks for them.

install(TARGETS paceline paceline-controller RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/kubectl-paceline DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS paceline-worker paceline-pod RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/paceline)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
# Beside each other: the chart's definition of TrainingJobs is a link into crds/.
install(DIRECTORY examples charts crds images DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN "__pycache__" EXCLUDE)

add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/completions/paceline
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completions
  COMMAND paceline completion bash > ${CMAKE_BINARY_DIR}/completions/paceline
  DEPENDS paceline VERBATIM)
add_custom_target(paceline_completions ALL DEPENDS ${CMAKE_BINARY_DIR}/completions/paceline)
install(FILES ${CMAKE_BINARY_DIR}/completions/paceline DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME paceline)
set(CPACK_PACKAGE_VENDOR Paceline)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Train models with ring all-reduce, on this machine or on Kubernetes")
set(CPACK_PACKAGE_DESCRIPTION
    "Paceline trains one TrainingJob with several processes that exchange gradients through shared memory or TCP: as processes of this machine \
by the command paceline, or as pods of a Kubernetes cluster by paceline-controller.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Paceline authors <paceline@paceline.dev>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS dataset-fashion-mnist)
# For projects of their own that link the runtime (docs/custom-model.md).
string(JOIN ", " CPACK_DEBIAN_PACKAGE_SUGGESTS
       cmake g++ libgrpc++-dev libprotobuf-dev libabsl-dev libssl-dev nlohmann-json3-dev libspdlog-dev zlib1g-dev libdnnl-dev)
include(CPack)
