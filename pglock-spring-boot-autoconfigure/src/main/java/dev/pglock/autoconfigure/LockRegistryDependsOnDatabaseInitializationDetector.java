package dev.pglock.autoconfigure;

import dev.pglock.LockRegistry;
import java.util.Set;
import org.springframework.boot.sql.init.dependency.AbstractBeansOfTypeDependsOnDatabaseInitializationDetector;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitializationDetector;

/** Lets every registry, also one of the application, come after what initializes the database. */
final class LockRegistryDependsOnDatabaseInitializationDetector
        extends AbstractBeansOfTypeDependsOnDatabaseInitializationDetector
        implements DependsOnDatabaseInitializationDetector {

    LockRegistryDependsOnDatabaseInitializationDetector() {}

    @Override
    protected Set<Class<?>> getDependsOnDatabaseInitializationBeanTypes() {
        return Set.of(LockRegistry.class);
    }
}
