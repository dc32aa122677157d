/**
 * What users import: the registry, the handle, the request, what is known about a lock, the exceptions and the
 * listener. Everybody may depend on this package; it depends on no other package of the project.
 */
@NullMarked
package dev.pglock;

import org.jspecify.annotations.NullMarked;
