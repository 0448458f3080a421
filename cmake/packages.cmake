# Debian packages by CPack, for the system that they are built on: latte, liblatteMAJOR.MINOR and liblatte-dev. packaging/make_debs.sh
# builds them. Only a build with LATTE_SHARED_PROGRAM has them: the program uses the library of its package.
if(NOT LATTE_SHARED_PROGRAM)
  return()
endif()
set(DEB ${PROJECT_SOURCE_DIR}/packaging/deb)
set(SODEB liblatte${LATTE_SOVERSION})
find_program(GZIP gzip REQUIRED)
set(LATTE_MAINTAINER "The Latte authors <noreply@users.noreply.github.com>" CACHE STRING "Who answers for the Debian packages")
option(LATTE_DEBIAN "Install what Debian packages have: the service, its configuration, change logs, copyrights" OFF)
if(LATTE_DEBIAN)
  file(READ packaging/latte.service service)
  string(REPLACE /usr/local/bin /usr/bin service "${service}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/deb/latte.service CONTENT "${service}" @ONLY)
  # Older systems have their units in /lib, and newer ones refuse packages with files there.
  file(STRINGS /etc/os-release older REGEX "VERSION_CODENAME=(bookworm|jammy)")
  if(older)
    set(units /lib/systemd/system)
  else()
    set(units /usr/lib/systemd/system)
  endif()
  install(FILES ${CMAKE_BINARY_DIR}/deb/latte.service DESTINATION ${units} COMPONENT program)
  install(FILES ${DEB}/latte.toml DESTINATION /etc/latte COMPONENT program)
  string(TIMESTAMP LATTE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where it is set
  foreach(pair program:latte library:${SODEB} development:liblatte-dev)
    string(REPLACE : ";" pair ${pair})
    list(GET pair 0 component)
    list(GET pair 1 package)
    set(doc ${CMAKE_BINARY_DIR}/deb/${package})
    configure_file(${DEB}/changelog.in ${doc}/changelog.Debian @ONLY)
    execute_process(COMMAND ${GZIP} -9nf ${doc}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
    file(READ THIRD_PARTY.md third_party)
    file(READ ${DEB}/copyright copyright)
    file(WRITE ${doc}/copyright "${copyright}\n${third_party}")
    install(FILES ${doc}/changelog.Debian.gz ${doc}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
  endforeach()
  install(CODE "execute_process(COMMAND ${GZIP} -9nf \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/latte.1\"
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME latte)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${LATTE_MAINTAINER}")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME latte)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${SODEB} (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${DEB}/conffiles ${DEB}/postinst ${DEB}/prerm ${DEB}/postrm)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "inference for MLA language models on CPUs
Latte runs language models with Multi-head Latent Attention (DeepSeek V2
to V3.2, Kimi-K2, Moonlight, GLM, MiniCPM3 and others) on x86-64 CPUs:
texts, chats, batches, and a server with the APIs of OpenAI and Anthropic.
.
The package has the program, a small model to try it, and a service that
is not started before it is enabled.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${SODEB})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${DEB}/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "inference for MLA language models on CPUs - library
Latte runs language models with Multi-head Latent Attention on x86-64
CPUs. This package has its engine for programs in C and C++.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME liblatte-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${SODEB} (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS libexpected-dev)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "inference for MLA language models on CPUs - headers
Latte runs language models with Multi-head Latent Attention on x86-64
CPUs. This package has the headers of its library and the files for CMake
and pkg-config. The C++ headers need libexpected-dev, the C header nothing.")
include(CPack)
